package face

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
)

// firingRow is an alert that fires, in the API.
type firingRow struct {
	alarm.Breach
	Silenced bool `json:"silenced"`
}

// ruleRow is a rule in force, in the API. A rule without a job holds for all jobs.
type ruleRow struct {
	Job string `json:"job,omitempty"`
	alert.InForce
}

type alertList struct {
	Firing   []firingRow        `json:"firing"`
	Silences []alert.Silence    `json:"silences"`
	Channels []alarm.ChannelRow `json:"channels"`
	Rules    []ruleRow          `json:"rules"`
	Past     []alarm.Past       `json:"past"` // the newest first
}

// alertRows are about alerts.
type alertRows struct{ *Face }

// all are the alerts, the silences and the channels.
func (f alertRows) all(ctx context.Context) (alertList, error) {
	now := f.Now()
	list := alertList{Firing: []firingRow{}, Silences: []alert.Silence{}, Channels: f.Alarm.Rows(), Past: f.Alarm.Past()}
	for _, r := range alert.Always {
		list.Rules = append(list.Rules, ruleRow{"", r})
	}
	for _, j := range f.Jobs.Started() {
		for _, r := range f.Alarm.Limits[j.Name].InForce() {
			list.Rules = append(list.Rules, ruleRow{j.Name, r})
		}
	}
	silences, err := alert.Silences(ctx, f.Store, now)
	if err != nil {
		return list, err
	}
	list.Silences = append(list.Silences, silences...)
	for _, b := range f.Alarm.Firing() {
		silenced := slices.ContainsFunc(silences, func(x alert.Silence) bool { return x.Covers(b.Job, b.Rule, b.Named(), now) })
		b.Untold = false // the silence says it
		list.Firing = append(list.Firing, firingRow{b, silenced})
	}
	return list, nil
}

func (f alertRows) rows() ([]action, []view) {
	silence := []option.Option{
		{Name: "job", Kind: option.Text, Choices: f.Jobs.Started().Names(), Usage: "All jobs if it is left out."},
		{Name: "rule", Kind: option.Text, Choices: alert.Names(), Usage: "All alerts if it is left out."},
		{Name: "provider", Kind: option.Text}, {Name: "note", Kind: option.Text},
		{Name: "for", Kind: option.Text, Usage: "How long, from 1m to 720h.",
			Pattern: "(([1-9]|[1-9][0-9]|[1-6][0-9][0-9])h([1-5]?[0-9]m)?|[1-9][0-9]?m)"},
	}
	actions := grouped("alerts", "alerts",
		action{At: "GET /api/v1/alerts", ID: "listAlerts", About: "What fires, what is silent, where alerts are sent, what is in force, and what is over",
			Out: "200 Alerts The alerts.", Do: func(c *call) (any, error) { return f.all(c.Context()) }},
		action{At: "POST /api/v1/alerts/silences", ID: "silenceAlerts", About: "Keep alerts from being sent for a while",
			Out:  "200 Silence The silence.",
			Body: "SilenceRequest", In: silence, Needs: []string{"for"},
			Example: `{"job": "docs", "provider": "stripe", "for": "2h", "note": "they move their site"}`,
			Do:      f.silence, Form: "/alerts/silences", Next: "/alerts"},
		action{At: "DELETE /api/v1/alerts/silences/{id}", ID: "endSilence", About: "End a silence before its time",
			Out:   "200 Silence The silence that was ended.",
			Fails: "404 NoSilence", Do: f.endSilence, Form: "/alerts/silences/{id}/end", Next: "/alerts"},
		action{At: "POST /api/v1/alerts/channels/{name}/test", ID: "testChannel", About: "Send a message to one channel at once, as a test",
			Out: "200 Status The channel has taken the message.", Fails: "404 NoChannel, 502 NotTaken", Do: f.test,
			Form: "/alerts/channels/{name}/test", Next: "/alerts?tested={name}"},
	)
	return actions, []view{{At: "GET /alerts", Template: "alerts", Section: "alerts", Title: "Alerts", Data: func(c *call) (any, error) {
		list, err := f.all(c.Context())
		c.Alerts = nil // the page has them below
		tested := c.in.Get("tested")
		if !slices.ContainsFunc(f.Alarm.Channels, func(ch alarm.Channel) bool { return ch.Name == tested }) {
			tested = ""
		}
		return alertsPage{list, f.Jobs.Started().Names(), alert.Names(), tested, f.Alarm.PublicURL == ""}, err
	}}}
}

// test sends a message to one channel.
func (f alertRows) test(c *call) (any, error) {
	name := c.PathValue("name")
	if err := f.Guard.Note(c.Context(), "alerts_test", name, ""); err != nil {
		return nil, err
	}
	switch err := f.Alarm.Test(c.Context(), name, f.Now()); {
	case errors.Is(err, alarm.ErrNoChannel):
		return nil, known.Answer(http.StatusNotFound, "there is no such channel; GET /api/v1/alerts lists them")
	case err != nil:
		return nil, known.Answer(http.StatusBadGateway, name+" did not take the test message: "+ledger.ErrorText(err))
	}
	return status{"sent"}, nil
}

// silence silences alerts for a while.
func (f alertRows) silence(c *call) (any, error) {
	get := c.in.Get
	sil := alert.Silence{Job: get("job"), Rule: get("rule"), Provider: get("provider"), Note: get("note"), By: people.Who(c.Context())}
	d, err := time.ParseDuration(get("for"))
	if err != nil || d < alert.MinSilence || d > alert.MaxSilence {
		return nil, known.Refuse("for: write a time from 1m to 720h, such as 2h")
	}
	if _, ok := f.Jobs.Started().Named(sil.Job); sil.Job != "" && !ok {
		return nil, known.Refuse("job: use %s", f.Jobs.Started().Or())
	}
	if err := sil.CheckRule(); err != nil {
		return nil, known.Refuse("rule: %s", err)
	}
	ctx := context.WithoutCancel(c.Context())
	if err := f.Guard.Note(ctx, "alerts_silence", sil.Text(), strings.TrimSuffix("for "+get("for")+": "+sil.Note, ": ")); err != nil {
		return nil, err
	}
	sil, err = alert.AddSilence(ctx, f.Store, sil, d, f.Now())
	f.silencesChanged()
	return sil, err
}

// silencesChanged shows the silences as they are now.
func (f alertRows) silencesChanged() {
	f.Alarm.RereadSilences()
	f.Board.Change()
}

// endSilence ends a silence before its time.
func (f alertRows) endSilence(c *call) (any, error) {
	none := known.Answer(http.StatusNotFound, "there is no such silence; GET /api/v1/alerts lists them")
	ctx, id := context.WithoutCancel(c.Context()), c.PathValue("id")
	all, err := alert.Silences(ctx, f.Store, f.Now())
	i := slices.IndexFunc(all, func(x alert.Silence) bool { return x.ID == id })
	if err == nil && i < 0 {
		err = none
	}
	if err == nil {
		err = f.Guard.Note(ctx, "alerts_silence_end", all[i].Text(), "")
	}
	if err != nil {
		return nil, err
	}
	sil, err := alert.EndSilence(ctx, f.Store, id)
	if errors.Is(err, alert.ErrNoSilence) {
		err = none
	}
	f.silencesChanged()
	return sil, err
}

// alertsPage is the data of the page of alerts.
type alertsPage struct {
	alertList
	Jobs, Names []string
	Tested      string // the channel that has just taken a test message
	NoLinks     bool   // messages have no links
}

// Of are the rules in force of a job; "": of all jobs.
func (p alertsPage) Of(job string) (out []alert.InForce) {
	for _, r := range p.Rules {
		if r.Job == job {
			out = append(out, r.InForce)
		}
	}
	return out
}
