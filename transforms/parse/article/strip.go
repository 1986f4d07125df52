package article

import "strings"

// raw are the elements that contain nothing of the article, and no element of their own
// kind; they are most of a page's bytes.
var raw = [...]string{"script", "style", "svg", "noscript", "iframe", "template", "nav", "select", "button", "picture", "video", "img", "link"}

// strip removes from a page what no reader sees, before the parser makes a tree
// of it, and returns the scripts with JSON-LD. That halves the time for a page.
// An element without an end stays. Publishers' selectors do not
// see what strip removes.
func strip(text string) (page string, jsonLD []string) {
	var b strings.Builder
	done := 0
	open := map[string]bool{} // elements without an end in the rest of the page: searched for once
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		at += i
		rest := text[at:]
		if strings.HasPrefix(rest, "<!--") {
			end := -1
			if !open["--"] {
				end = strings.Index(rest[2:], "-->")
			}
			if end < 0 {
				open["--"] = true
				at += 4
				continue
			}
			b.WriteString(text[done:at])
			at += 2 + end + 3
			done = at
			continue
		}
		name := rawName(rest)
		if name == "" || open[name] {
			at++
			continue
		}
		tag := strings.IndexByte(rest, '>') + 1
		if tag == 0 {
			break
		}
		if name == "img" || name == "link" { // they have no end
			wanted := name == "link" && strings.Contains(strings.ToLower(rest[:tag]), "canonical")
			if !wanted && strings.Count(rest[:tag], `"`)%2 == 0 && strings.Count(rest[:tag], "'")%2 == 0 { // else the > may be in an attribute's value
				b.WriteString(text[done:at])
				done = at + tag
			}
			at += tag
			continue
		}
		end := closing(rest[tag:], name)
		if end < 0 {
			open[name] = true
			at += tag
			continue
		}
		if name == "script" && strings.Contains(rest[:tag], "ld+json") {
			jsonLD = append(jsonLD, rest[tag:tag+end])
		}
		if done == 0 {
			b.Grow(len(text) / 2)
		}
		b.WriteString(text[done:at])
		b.WriteByte(' ')
		at += tag + end + len("</>") + len(name)
		done = at
	}
	if done == 0 {
		return text, jsonLD
	}
	b.WriteString(text[done:])
	return b.String(), jsonLD
}

// rawName is the raw element that begins here, "" for none.
func rawName(s string) string {
	for _, name := range raw {
		if len(s) > len(name)+1 && s[1]|0x20 == name[0] && strings.EqualFold(s[1:1+len(name)], name) && strings.IndexByte(" \t\r\n\f>/", s[1+len(name)]) >= 0 {
			return name
		}
	}
	return ""
}

// closing is where "</name>" begins in s, in upper or lower case, -1 for nowhere.
func closing(s, name string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], "</")
		if i < 0 {
			return -1
		}
		at += i
		if len(s) >= at+3+len(name) && strings.EqualFold(s[at+2:at+2+len(name)], name) && s[at+2+len(name)] == '>' {
			return at
		}
		at += 2
	}
}
