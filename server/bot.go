package server

import "net/http"

// botPath has the page about the crawlers. It is open to everybody if the configuration
// has it, because the operators of sites have no token.
const botPath = "/bot"

func (s *Server) botPage(w http.ResponseWriter, r *http.Request) {
	if s.config.Bot == nil {
		s.refuse(w, r, http.StatusNotFound, "there is no page about the crawlers; write bot, with operator and contact, into the server's --config file")
		return
	}
	b, err := s.config.Bot.HTML()
	s.pages.send(w, r, http.StatusOK, b, err)
}
