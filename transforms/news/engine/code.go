package engine

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

// code returns one word for the reason of an error, which logs have next to its sentence: robots_deny, robots_unreachable,
// http_429 and other statuses, crawl_delay, pause, hours, wall, a web.Kind such as timeout, unreadable.
func code(err error) string {
	var stop *errStop
	var refused *refusedError
	var abandoned *polite.AbandonedError
	var robots *polite.RobotsError
	var failed *web.Error
	var status *statusError
	switch {
	case errors.As(err, &stop):
		return stop.code
	case errors.As(err, &refused):
		if refused.wall.Kind.Wall() && refused.wall.Kind != answer.ErrorPage {
			return "wall"
		}
		return ofStatus(refused.status)
	case errors.As(err, &abandoned):
		switch {
		case abandoned.Hours != "":
			return "hours"
		case abandoned.CrawlDelay > 0:
			return "crawl_delay"
		case abandoned.Status > 0:
			return ofStatus(abandoned.Status)
		}
		return "pause"
	case errors.As(err, &robots):
		return "robots_unreachable"
	case errors.As(err, new(*polite.DisallowedError)):
		return "robots_deny"
	case errors.As(err, &status):
		return ofStatus(status.status)
	case errors.As(err, &failed):
		return string(failed.Kind)
	}
	return "unreadable"
}

func ofStatus(status int) string { return fmt.Sprintf("http_%d", status) }

// codeOf is code for an article's dead letter, whose kind says more than the error does.
func codeOf(kind string, err error) string {
	switch kind {
	case "article_failed":
		return code(err)
	case "same_text":
		return "duplicate"
	case string(answer.Login), string(answer.Soft404), string(answer.ErrorPage):
		return "wall"
	}
	return kind
}

// statusError is an answer with another status than 200.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

func checkStatus(status int) error {
	if status == http.StatusOK {
		return nil
	}
	return &statusError{status}
}

// leftOut logs why nothing is stored from an address.
func (v *visit) leftOut(address, code, reason string) {
	v.log.Info("article_left_out", "code", code, "url", ledger.Redact(address), "reason", ledger.Redact(reason))
}
