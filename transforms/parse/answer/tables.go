package answer

// marks are what scripts, forms and elements of a wall are called.
var marks = []sign{
	{Challenge, "Cloudflare", "_cf_chl_opt", longWall},
	{Challenge, "Cloudflare", "cf-browser-verification", longWall},
	{Challenge, "Cloudflare", "cf-error-details", someWords},
	{Challenge, "Akamai", "sec-if-cpt-container", someWords},
	{Challenge, "Akamai", "/_sec/cp_challenge/", someWords},
	{Challenge, "Imperva", "_incapsula_resource", fewWords},
	{Challenge, "DataDome", "captcha-delivery.com", fewWords},
	{Challenge, "HUMAN", "px-captcha", someWords},
	{Challenge, "HUMAN", "_pxappid", fewWords},
	{Challenge, "AWS WAF", "awswafcookiedomainlist", fewWords},
	{Challenge, "AWS WAF", ".token.awswaf.com/", fewWords},
	{Challenge, "Kasada", "kpsdk", fewWords},
	{Challenge, "Sucuri", "sucuri_cloudproxy_js", fewWords},
	{Parked, "Sedo", "sedoparking.com", someWords},
	{Parked, "GoDaddy", "img1.wsimg.com/parking-lander", someWords},
	{Parked, "Bodis", "data-adblockkey", someWords},
	{Parked, "Bodis", "bodis.com", someWords},
	{Parked, "ParkingCrew", "parkingcrew.net", someWords},
	{Parked, "HugeDomains", "hugedomains.com", someWords},
	{Parked, "Afternic", "afternic.com", someWords},
}

// hosts are where walls are served from. One with a dot at its end is how a name begins.
var hosts = []sign{
	{Consent, "Yahoo", "consent.yahoo.com", enough},
	{Consent, "Yahoo", "guce.yahoo.com", enough},
	{Consent, "Yahoo", "guce.advertising.com", enough},
	{Consent, "Google", "consent.google.com", enough},
	{Consent, "Google", "consent.youtube.com", enough},
	{Consent, "", "consent.", longWall},
	{Parked, "HugeDomains", "hugedomains.com", longWall},
	{Parked, "Afternic", "afternic.com", longWall},
	{Parked, "Dan", "dan.com", longWall},
	{Parked, "Sedo", "sedo.com", longWall},
	{Challenge, "DataDome", "captcha-delivery.com", longWall},
	{Challenge, "Imperva", "validate.perfdrive.com", longWall},
	{Login, "Google", "accounts.google.com", someWords},
	{Login, "Microsoft", "login.microsoftonline.com", someWords},
	{Login, "", "login.", someWords},
	{Login, "", "sso.", someWords},
}

// paths are parts of the path of a wall.
var paths = map[string]Kind{
	"404": Soft404, "not-found": Soft404, "notfound": Soft404, "page-not-found": Soft404, "error404": Soft404, "error-404": Soft404, "404-error": Soft404, "pagenotfound": Soft404,
	"login": Login, "signin": Login, "sign-in": Login, "sign_in": Login, "log-in": Login, "wp-login": Login, "logon": Login,
	"consent": Consent, "cookiewall": Consent, "cookie-wall": Consent, "privacy-gate": Consent, "cookie-consent": Consent,
	"maintenance": Maintenance, "lander": Parked,
	"captcha": Challenge,
}

// says are phrases that stand in the whole of a short text.
var says = []struct {
	kind   Kind
	vendor string
	text   string
	most   int
	unseen bool // in the text for browsers without scripts
}{
	{Challenge, "Cloudflare", "checking your browser before you access", 0, false},
	{Challenge, "Cloudflare", "checking your browser before accessing", 0, false},
	{Challenge, "Cloudflare", "needs to review the security of your connection", 0, false},
	{Challenge, "", "enable javascript and cookies to continue", 0, true},
	{Challenge, "", "enable javascript and cookies to continue", 0, false},
	{Challenge, "", "verify you are human", 0, false},
	{Challenge, "Akamai", "you don't have permission to access", 0, false},
	{Maintenance, "WordPress", "briefly unavailable for scheduled maintenance", 0, false},
	{Maintenance, "", "down for maintenance", 0, false},
	{Parked, "", "domain is for sale", someWords, false},
	{Parked, "", "domain may be for sale", someWords, false},
	{Parked, "", "this domain is parked", someWords, false},
	{Paywall, "", "subscribe to continue reading", 0, false},
}

// bodies are what answers that are no HTML say.
var bodies = []sign{
	{Challenge, "DataDome", "captcha-delivery.com", 0},
	{Challenge, "HUMAN", `"jsclientsrc"`, 0},
	{Soft404, "S3", "<code>nosuchkey</code>", 0},
	{ErrorPage, "S3", "<code>accessdenied</code>", 0},
	{Soft404, "", `"not found"`, 0},
}

const loginPattern = `(?:please )?(?:log|sign) ?-?in(?: to .{1,40})?|로그인|ログイン|登录|登錄|登入|anmelden|anmeldung|(?:se )?connexion|connectez-vous|iniciar sesión|entrar|вход|войти|увійти|вхід|تسجيل الدخول|เข้าสู่ระบบ|đăng nhập|masuk|accedi|inloggen|logowanie|giriş(?: yap)?`

// wallPhrases are whole parts of titles and headings.
var wallPhrases = []phrase{
	{Challenge, "Cloudflare", `just a moment|attention required|access denied .{1,80} used cloudflare to restrict access|please wait\.* \| cloudflare`, someWords},
	{Challenge, "", `checking your browser.{0,80}|one moment,? please|are you (?:a )?(?:human|robot)|robot or human|pardon our interruption|access (?:to this page has been )?denied|you have been blocked|sorry, you have been blocked|human verification|security check|security verification|bot verification|captcha|unusual traffic .{0,60}|ddos-guard`, someWords},
	{Consent, "", `before you continue(?: to .{1,40})?|bevor sie (?:zu .{1,40} )?(?:weitergehen|fortfahren)|avant d'accéder à .{1,40}|antes de (?:ir|continuar).{0,40}`, longWall},
	{Soft404, "", `(?:(?:error|http(?: status)?|status(?: code)?|code|fehler|erreur)\W*)?404(?:\W*(?:error|fehler|not found|page not found|file not found|\(not found\)))?`, someWords},
	{Soft404, "", `(?:404\W*)?(?:oops\W*|sorry\W*|uh oh\W*)?(?:the |this |that |your )?(?:requested )?(?:web ?)?(?:page|document|file|url|resource|site)(?: (?:you (?:requested|were looking for|are looking for)|you're looking for|requested))?(?: (?:was|could|can|is|has))?(?: ?(?:not|n['’]t|no longer|cannot|can['’]t)) (?:be )?(?:found|available|exist)`, someWords},
	{Soft404, "", `(?:the )?(?:page|document|file|url)(?: you (?:requested|were looking for|are looking for))? (?:cannot be found|can't be found|does not exist|doesn't exist|no longer exists)|not found|(?:404\W*)?nothing (?:was )?found(?: here)?`, someWords},
	{Soft404, "", `(?:요청하신 )?(?:페이지를|문서를|기사를) 찾을 수 (?:없|가 없).{0,20}|존재하지 않는 (?:페이지|문서|기사).{0,20}`, someWords},
	{Maintenance, "", `(?:site |website |scheduled |under |system |we are (?:currently )?under )?maintenance(?: mode| in progress| break)?|(?:site|website) (?:is )?(?:temporarily )?(?:unavailable|down|offline)(?: for maintenance)?|service (?:temporarily )?unavailable|we'll be (?:right )?back(?: soon)?|be right back|점검 ?중.{0,20}|(?:시스템|서비스|사이트) 점검.{0,20}|メンテナンス中.{0,20}|(?:только )?технические работы|wartungsarbeiten|wartungsmodus|en mantenimiento|em manutenção|(?:site )?en maintenance|系统维护.{0,20}|网站维护.{0,20}`, someWords},
	{Parked, "nginx", `welcome to nginx`, someWords},
	{Parked, "Apache", `apache2 (?:ubuntu|debian) default page.{0,20}|it works`, longWall},
	{Parked, "", `(?:this |the )?(?:domain|domain name|website) (?:is |may be )?(?:for sale|parked)|.{3,60}\.[a-z]{2,10} is for sale.{0,20}|parked domain|domain parking|domain default page|default web site page|iis windows server|plesk obsidian.{0,40}`, someWords},
	{ErrorPage, "", `(?:error |http )?5\d\d(?:\W*(?:error|internal server error|bad gateway|gateway time-?out|server error))?|internal server error|bad gateway|gateway time-?out|server error|application error|runtime error|database error|error establishing a database connection|fatal error|whitelabel error page|an error (?:has )?occurred|something went wrong|.{1,80} \| 5\d\d.{1,40}`, someWords},
}
