package tree

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inForeign reports whether a token is for an SVG or MathML element that is open.
func (b *builder) inForeign() bool {
	n := b.top()
	if n.Namespace == "" {
		return false
	}
	if holdsHTML(n) && (b.kind == text || b.kind == startTag) {
		b.odd = b.odd || b.kind == startTag // such elements are rare
		return false
	}
	return true
}

// holdsHTML reports whether the content of a foreign element is HTML.
func holdsHTML(n *html.Node) bool {
	switch n.Data {
	case "title", "desc", "foreignObject":
		return n.Namespace == "svg"
	case "mi", "mo", "mn", "ms", "mtext":
		return n.Namespace == "math"
	}
	return false
}

// addForeign adds the element of a tag as one of SVG or MathML. None of HTML's rules finds it.
func (b *builder) addForeign(namespace string) {
	name := b.el.name
	if b.el.ruled && !foreignToo[name] || name == "annotation-xml" {
		b.odd = true
		return
	}
	el := element{atom: b.el.atom}
	if namespace == "svg" {
		if x := svgNames[name]; x != "" {
			name, el.atom = x, atom.Lookup([]byte(x))
		}
	}
	for i := range b.attr {
		a := &b.attr[i]
		switch x := svgAttributes[a.Key]; {
		case x != "" && namespace == "svg":
			a.Key = x
		case namespace == "math" && a.Key == "definitionurl":
			a.Key = "definitionURL"
		case foreignAttributes[a.Key]:
			a.Namespace, a.Key, _ = strings.Cut(a.Key, ":")
		}
	}
	b.el = &el
	n := b.add()
	n.Data, n.Namespace = name, namespace
	if holdsHTML(n) {
		el.is = special | endsScope
	}
	if b.selfClosing {
		b.pop()
	}
}

func (b *builder) inForeignContent() bool {
	switch b.kind {
	case text:
		b.addText(b.text)
	case comment:
		b.odd = strings.HasPrefix(b.text, "[CDATA[") // here it is text, and has another end
		b.addComment(b.top())
	case startTag:
		if b.breaksOut() {
			for b.top().Namespace != "" && !holdsHTML(b.top()) {
				b.pop()
			}
			return b.step()
		}
		b.addForeign(b.top().Namespace)
	case endTag:
		for i := len(b.open) - 1; b.open[i].node.Namespace != ""; i-- {
			if strings.EqualFold(b.open[i].node.Data, b.el.name) {
				return b.close(i)
			}
		}
		return b.step()
	}
	return true
}

// breaksOut reports whether a start tag ends the foreign elements around it.
func (b *builder) breaksOut() bool {
	if b.el.name == "font" {
		for _, a := range b.attr {
			if a.Key == "color" || a.Key == "face" || a.Key == "size" {
				return true
			}
		}
	}
	return breakout[b.el.name]
}

func words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// byLower has names by themselves in lower case, as pages write them and the tokenizer reads them.
func byLower(names string) map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(names) {
		m[strings.ToLower(w)] = w
	}
	return m
}

var (
	breakout = words(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu
		meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`)

	// foreignToo are elements of HTML whose names have no meaning of HTML in SVG.
	foreignToo = words("a font image math script style svg title")

	foreignAttributes = words("xlink:actuate xlink:arcrole xlink:href xlink:role xlink:show xlink:title xlink:type xml:lang xml:space xmlns:xlink")

	svgNames = byLower(`altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix
		feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feFlood feFuncA feFuncB
		feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight
		feTile feTurbulence foreignObject glyphRef linearGradient radialGradient textPath`)

	svgAttributes = byLower(`attributeName attributeType baseFrequency baseProfile calcMode clipPathUnits diffuseConstant edgeMode
		filterUnits glyphRef gradientTransform gradientUnits kernelMatrix kernelUnitLength keyPoints keySplines keyTimes lengthAdjust
		limitingConeAngle markerHeight markerUnits markerWidth maskContentUnits maskUnits numOctaves pathLength patternContentUnits
		patternTransform patternUnits pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits refX refY
		repeatCount repeatDur requiredExtensions requiredFeatures specularConstant specularExponent spreadMethod startOffset
		stdDeviation stitchTiles surfaceScale systemLanguage tableValues targetX targetY textLength viewBox viewTarget
		xChannelSelector yChannelSelector zoomAndPan`)
)
