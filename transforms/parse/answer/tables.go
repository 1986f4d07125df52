package answer

// marks are what scripts, forms and elements of a wall are called. Scripts that vendors put on each page of a protected
// site are not among them.
var marks = []sign{
	{Challenge, "Cloudflare", "_cf_chl_opt", longWall},
	{Challenge, "Cloudflare", "cf-browser-verification", longWall},
	{Challenge, "Cloudflare", "cf_chl_", someWords},
	{Challenge, "Akamai", "sec-if-cpt-container", someWords},
	{Challenge, "Akamai", "/_sec/cp_challenge/", someWords},
	{Challenge, "Imperva", "/_incapsula_resource?swudnsai=", someWords},
	{Challenge, "Imperva", "/_incapsula_resource?swhanedl=", someWords},
	{Challenge, "Imperva", "/_incapsula_resource?cwudnsai=", someWords},
	{Challenge, "DataDome", "captcha-delivery.com", fewWords},
	{Challenge, "HUMAN", "px-captcha", someWords},
	{Challenge, "HUMAN", "captcha.px-cdn.net", someWords},
	{Challenge, "HUMAN", "captcha.px-cloud.net", someWords},
	{Challenge, "AWS WAF", "awswafcookiedomainlist", fewWords},
	{Challenge, "AWS WAF", "window.gokuprops", fewWords},
	{Challenge, "Kasada", "/ips.js?", fewWords},
	{Challenge, "Sucuri", "sucuri_cloudproxy_js", fewWords},
	{Challenge, "Sucuri", "sucuri-firewall-block.css", longWall},
	{Challenge, "F5", "/tspd/", fewWords},
	{Parked, "Sedo", "sedoparking.com", someWords},
	{Parked, "GoDaddy", "/parking-lander/", someWords},
	{Parked, "GoDaddy", `window.location.href="/lander"`, fewWords},
	{Parked, "Bodis", "data-adblockkey", someWords},
	{Parked, "Bodis", "parking.bodiscdn.com", someWords},
	{Parked, "ParkingCrew", "parkingcrew.net", someWords},
}

// hosts are where walls are served from. One with a dot at its end is how a name begins.
var hosts = []sign{
	{Consent, "Yahoo", "consent.yahoo.com", enough},
	{Consent, "Yahoo", "guce.yahoo.com", enough},
	{Consent, "Yahoo", "guce.advertising.com", enough},
	{Consent, "Google", "consent.google.com", enough},
	{Consent, "Google", "consent.youtube.com", enough},
	{Consent, "DPG Media", "myprivacy.dpgmedia.nl", enough},
	{Consent, "", "consent.", longWall},
	{Parked, "HugeDomains", "hugedomains.com", longWall},
	{Parked, "Afternic", "afternic.com", longWall},
	{Parked, "Dan", "dan.com", longWall},
	{Parked, "Sedo", "sedo.com", longWall},
	{Challenge, "DataDome", "captcha-delivery.com", longWall},
	{Challenge, "Radware", "validate.perfdrive.com", longWall},
	{Login, "Google", "accounts.google.com", someWords},
	{Login, "Microsoft", "login.microsoftonline.com", someWords},
	{Login, "", "login.", someWords},
	{Login, "", "sso.", someWords},
}

// paths are parts of the path of a wall.
var paths = map[string]Kind{
	"404": Soft404, "not-found": Soft404, "notfound": Soft404, "page-not-found": Soft404, "error404": Soft404, "error-404": Soft404,
	"404-error": Soft404, "pagenotfound": Soft404,
	"login": Login, "signin": Login, "sign-in": Login, "sign_in": Login, "log-in": Login, "wp-login": Login, "logon": Login,
	"consent": Consent, "cookiewall": Consent, "cookie-wall": Consent, "privacy-gate": Consent, "cookie-consent": Consent,
	"maintenance": Maintenance, "lander": Parked, "captcha": Challenge,
}

// says are phrases of a short text.
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
	{Challenge, "Cloudflare", "used cloudflare to restrict access", someWords, false},
	{Challenge, "", "enable javascript and cookies to continue", 0, true},
	{Challenge, "", "enable javascript and cookies to continue", 0, false},
	{Challenge, "", "verify you are human", 0, false},
	{Challenge, "", "verify that you are not a robot", 0, false},
	{Challenge, "Akamai", "you don't have permission to access", 0, false},
	{Challenge, "Akamai", "errors.edgesuite.net", 0, false},
	{Challenge, "Imperva", "incapsula incident id", 0, false},
	{Challenge, "DataDome", "please enable js and disable any ad blocker", 0, false},
	{Challenge, "F5", "the requested url was rejected. please consult with your administrator", 0, false},
	{Challenge, "", "자동화된 접근이 감지", 0, false},
	{Challenge, "", "로봇이 아닙니다", 0, false},
	{Challenge, "", "ロボットではないことを確認", 0, false},
	{Challenge, "", "请完成安全验证", 0, false},
	{Challenge, "", "请完成以下验证", 0, false},
	{Challenge, "", "подтвердите, что вы не робот", 0, false},
	{Challenge, "", "підтвердьте, що ви не робот", 0, false},
	{Challenge, "", "dass sie kein roboter sind", 0, false},
	{Challenge, "", "que vous n'êtes pas un robot", 0, false},
	{Challenge, "", "que no eres un robot", 0, false},
	{Challenge, "", "que você não é um robô", 0, false},
	{Challenge, "", "أنك لست روبوت", 0, false},
	{Challenge, "", "ยืนยันว่าคุณไม่ใช่หุ่นยนต์", 0, false},
	{Challenge, "", "bạn không phải là người máy", 0, false},
	{Challenge, "", "bahwa anda bukan robot", 0, false},
	{Maintenance, "WordPress", "briefly unavailable for scheduled maintenance", 0, false},
	{Maintenance, "", "down for maintenance", 0, false},
	{Maintenance, "", "undergoing maintenance", 0, false},
	{Maintenance, "", "undergoing scheduled maintenance", 0, false},
	{Parked, "", "domain is for sale", someWords, false},
	{Parked, "", "domain may be for sale", someWords, false},
	{Parked, "", "domain is parked", someWords, false},
	{Parked, "Sedo", "domain has been parked at your registrar", someWords, false},
	{Parked, "", "diese domain steht zum verkauf", someWords, false},
	{Parked, "", "このドメインは", 150, false},
	{Parked, "", "이 도메인은", 150, false},
	{Parked, "", "该域名出售", someWords, false},
	{Parked, "", "домен продается", someWords, false},
	{Parked, "", "домен продаётся", someWords, false},
	{Paywall, "", "subscribe to continue reading", 0, false},
	{Paywall, "", "이 기사는 구독자만", 0, false},
	{Paywall, "", "dieser artikel ist nur für abonnenten", 0, false},
	{Paywall, "", "cet article est réservé aux abonnés", 0, false},
	{Paywall, "", "この記事は有料会員", 0, false},
	{ErrorPage, "", "error establishing a database connection", 0, false},
	{ErrorPage, "", "there has been a critical error on this website", 0, false},
	{ErrorPage, "", "traceback (most recent call last)", someWords, false},
}

// bodies are what answers that are no HTML say.
var bodies = []sign{
	{Challenge, "DataDome", "captcha-delivery.com", 0},
	{Challenge, "HUMAN", `"jsclientsrc"`, 0},
	{Soft404, "S3", "<code>nosuchkey</code>", 0},
	{ErrorPage, "S3", "<code>accessdenied</code>", 0},
	{Soft404, "", `"not found"`, 0},
	{Soft404, "Vercel", "not_found", 0},
}

const loginPattern = `(?:please )?(?:log|sign) ?-?in(?: to .{1,40})?|로그인|ログイン|登录|登錄|登入|anmelden|anmeldung|login|` +
	`(?:se )?connexion|connectez-vous|iniciar sesión|entrar|вход|войти|увійти|вхід|تسجيل الدخول|เข้าสู่ระบบ|đăng nhập|masuk|accedi|inloggen`

// weakWords is the most prose of a page that is known by words which name the subject of pages too.
const weakWords = 120

// wallPhrases are whole parts of titles and headings.
var wallPhrases = []phrase{
	{Challenge, "Cloudflare", `just a moment|attention required|please wait\.* \| cloudflare|nur einen moment|un instant|` +
		`un momento|um momento|один момент|請稍候|请稍候|しばらくお待ちください|잠시만 기다리십시오|this website has been temporarily rate limited`, someWords},
	{Challenge, "Sucuri", `sucuri website firewall.{0,40}`, longWall},
	{Challenge, "Imperva", `pardon our interruption`, longWall},
	{Challenge, "HUMAN", `access to this page has been denied`, someWords},
	{Challenge, "F5", `request rejected`, fewWords},
	{Challenge, "DDoS-Guard", `ddos-guard`, fewWords},
	{Challenge, "", `checking your browser.{0,80}|are you (?:a )?(?:human|robot)|robot or human|(?:sorry, )?you have been blocked|` +
		`human verification|please verify you are (?:a )?human|verify you are human|` +
		`our systems have detected unusual traffic.{0,80}`, someWords},
	{Challenge, "", `access denied|access forbidden|security check|security verification|bot verification|captcha|` +
		`one moment,? please|安全验证|접근이 차단되었습니다|доступ ограничен|доступ запрещен|zugriff verweigert|accès refusé|acceso denegado|` +
		`acesso negado`, weakWords * 2},
	{Consent, "", `before you continue(?: to .{1,40})?|bevor sie (?:zu .{1,40} )?(?:weitergehen|fortfahren)|` +
		`avant d'accéder à .{1,40}|antes de (?:ir|continuar).{0,40}|prima di continuare.{0,40}|voordat je (?:verdergaat|` +
		`doorgaat).{0,40}`, longWall},
	{Soft404, "", `(?:(?:error|http(?: status)?|status(?: code)?|code|fehler|erreur)\W*)?404(?:\W*(?:error|fehler|not found|` +
		`page not found|file not found|\(not found\)))?`, someWords},
	{Soft404, "", `(?:404\W*)?(?:oops\W*|sorry\W*|uh oh\W*|whoops\W*)?(?:we can't find |we couldn't find )(?:the|that|` +
		`this) page.{0,40}`, someWords},
	{Soft404, "", `(?:404\W*)?(?:oops\W*|sorry\W*)?(?:the |this |that |your )?(?:requested )?(?:web ?)?(?:page|document|file|url|` +
		`resource|site)(?: (?:you (?:requested|were looking for|are looking for)|you're looking for|requested))?(?: (?:was|could|can|` +
		`is|has|does))?(?: ?(?:not|n't|no longer|cannot|can't|doesn't)) ?(?:be )?(?:found|available|exists?)`, someWords},
	{Soft404, "", `not found|(?:404\W*)?nothing (?:was )?found(?: here)?|deployment_not_found|` +
		`there isn't a github pages site here`, someWords},
	{Soft404, "", `(?:요청하신 )?(?:페이지를|문서를|기사를) 찾을 수 (?:없|가 없).{0,20}|존재하지 않는 (?:페이지|문서|기사).{0,20}|삭제된 기사.{0,20}`, someWords},
	{Soft404, "", `(?:お探しの)?ページ(?:が|は)見つかり?ません.{0,20}|(?:お探しの)?ページは?(?:が)?存在しません.{0,20}|页面(?:不存在|未找到|没有找到).{0,10}|您(?:访问|` +
		`查找)的页面不存在.{0,10}|找不到(?:页面|頁面|網頁).{0,10}`, someWords},
	{Soft404, "", `(?:die )?seite (?:wurde )?(?:leider )?nicht gefunden|page (?:non trouvée|introuvable)|página no encontrada|` +
		`página não encontrada|pagina non trovata|pagina niet gevonden|страница не найдена|сторінку не знайдено|` +
		`strona nie została znaleziona|sayfa bulunamadı`, someWords},
	{Soft404, "", `الصفحة غير موجودة|لم يتم العثور على الصفحة|ไม่พบหน้า.{0,40}|không tìm thấy trang.{0,20}|trang không tồn tại|` +
		`halaman tidak ditemukan`, someWords},
	{Maintenance, "", `(?:site |website )?(?:is )?(?:currently )?(?:under|down for|closed for) maintenance|` +
		`maintenance in progress|(?:site|website) (?:is )?temporarily (?:unavailable|down|offline)|service temporarily unavailable|` +
		`we'll be (?:right )?back(?: soon)?|be right back|we'll be back soon.{0,40}`, someWords},
	{Maintenance, "", `(?:시스템|서비스|사이트) 점검.{0,20}|점검 ?중.{0,20}|(?:ただいま)?メンテナンス中.{0,20}|(?:系统|网站|系統|網站)(?:正在)?(?:维护|維護).{0,20}|` +
		`(?:ведутся |на сайте ведутся )?технические работы|ведуться технічні роботи|wartungsarbeiten|wartungsmodus|` +
		`(?:sitio )?en mantenimiento|(?:site )?em manutenção|(?:site )?en maintenance|الموقع تحت الصيانة|ปิดปรับปรุง.{0,30}|` +
		`(?:website )?đang bảo trì|sedang dalam (?:perbaikan|pemeliharaan)`, fewWords},
	{Maintenance, "", `maintenance(?: mode)?|service unavailable|opening soon`, weakWords},
	{Parked, "nginx", `welcome to nginx`, someWords},
	{Parked, "Apache", `apache2 (?:ubuntu|debian) default page.{0,20}`, enough},
	{Parked, "Apache", `it works`, weakWords},
	{Parked, "", `(?:this |the )?(?:domain|domain name|website) (?:is |may be )?(?:for sale|parked)|` +
		`[\w-]{1,60}\.[a-z]{2,10} is for sale.{0,20}|parked domain|domain parking|domain default page|iis windows server|` +
		`web server's default page`, someWords},
	{ErrorPage, "", `(?:error |http )?5\d\d\W*(?:error|internal server error|bad gateway|gateway time-?out|server error|` +
		`service unavailable)|internal server error|error establishing a database connection|whitelabel error page|` +
		`database error`, fewWords},
	{ErrorPage, "Cloudflare", `.{1,80} \| 5\d\d: .{1,40}`, someWords},
	{ErrorPage, "", `(?:error )?5\d\d|bad gateway|gateway time-?out|server error(?: in '.{1,60}' application)?|` +
		`application error.{0,80}|runtime error|fatal error|an error (?:has )?occurred|something went wrong`, weakWords},
}
