package docsim

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// remarks are further sentences for sections, so that these are about as long as in real
// documentation, and as different: of the chunks of real documentation about one in a
// hundred is nearly like another. %s is what the section is about.
var remarks = []string{
	"When you set up %s for the first time, begin in a test project: nothing that happens there is billed, and its data is removed after thirty days.",
	"The console shows each %s call with its identifier, its duration and the reason why it was refused; quote the identifier when you ask for help.",
	"Calls are idempotent as long as they carry the same request key, so a client may send a %s call again after a broken connection without doing the work twice.",
	"Responses are JSON, fields may be added at any time, and a client should pass over those that it does not know.",
	"Lists of %s objects come in pages of at most one hundred entries with a cursor for the next page; a cursor is good for one hour.",
	"Errors have a code for programs and a message for people: a client should decide by the code, as messages are reworded now and then.",
	"If you move %s from one region to another, create the new objects first, switch the traffic, and remove the old ones when their logs have gone quiet.",
	"Every object of %s has a creation time in UTC, written as RFC 3339 with microseconds, and a version that grows with each change.",
	"Webhooks about %s are signed with a secret of their own; compare the signature in constant time before you parse the body.",
	"A sandbox answers with recorded examples, which makes it a good place to try %s without a contract.",
	"Administrators may restrict %s to named members of a team, and a log keeps who allowed what for a year.",
	"Numbers larger than fifty-three bits are sent as strings, because many JavaScript programs would round them.",
	"Where latency matters, keep the connection open and send %s over HTTP/2; a new handshake costs more than most calls.",
	"The client libraries for Go, Python and TypeScript wrap %s in types that are generated each night from one description.",
	"Deleting is final after a day: until then the object of %s can be brought back with its old identifier.",
	"Filters may be joined with and, or and brackets, and an index is used only where the first of them names an exact value.",
	"To find out why %s is slow, ask for a trace with the header that the support page names; it arrives by mail within minutes.",
	"Uploads above eight megabytes go in parts, each with its checksum, and are put together when the last one has come in.",
	"Names may have letters of any script, but no control characters, and two that differ only in case count as the same.",
	"During maintenance %s can be read and not written; a header tells when writing will be possible again.",
	"Quotas for %s are raised on request, usually the same working day, if a short note explains what the traffic will look like.",
	"A preview flag turns on what is planned for %s in the next quarter; such parts may change without notice.",
	"Amounts are whole numbers of the smallest unit of a currency, so that no rounding happens on the way.",
	"Old versions are served for two years after a newer one, and their answers carry a Sunset header in the last six months.",
	"Batches may hold up to five hundred entries of %s; each has a result of its own, and one bad entry does not spoil the others.",
	"Tags are pairs of a key and a value; up to forty may be put on %s, and bills can be split by them.",
	"Exports run in the background and leave a compressed file for each day in a bucket that belongs to you.",
	"If two writers change %s at the same time, the second gets 409 with the current version and should read before it tries again.",
	"Search understands quoted phrases and a minus sign; results are ordered by relevance, then by age.",
	"Metrics for %s can be scraped in the text format of Prometheus, with labels for region, plan and outcome.",
	"Keys can be rotated without a break: both the old and the new one are accepted for twenty-four hours.",
	"An audit by an outside company looks at %s once a year, and its summary is sent to customers who sign for it.",
	"Time-outs of thirty seconds are enough for all calls but imports, which answer at once with a job to ask for.",
	"In a browser, use a short-lived token made by your own backend, restricted to %s and to the origin of the page.",
	"Attachments are scanned before they can be fetched, so the first seconds after an upload may answer 202.",
	"The emulator runs on a laptop, knows most of %s, and forgets everything when it stops.",
	"Sorting is stable, so that entries with equal values keep the order in which they were made.",
	"Regions differ: in two of them %s is not offered yet, and a table at the end of the handbook says which.",
	"Support answers questions about %s on weekdays; the paid plans add a telephone number for the night.",
	"Terraform and Pulumi have resources for %s, which are kept by the community and tested by the company.",
}

var koreanRemarks = []string{
	"%s 기능을 처음 설정할 때는 테스트 환경에서 시작하세요. 테스트 환경의 데이터는 30일 뒤에 삭제되며 요금이 청구되지 않습니다.",
	"개발자 센터에서 각 %s 호출의 식별자, 처리 시간, 거절 사유를 확인할 수 있습니다. 문의할 때 식별자를 함께 알려 주세요.",
	"같은 멱등키를 사용하면 연결이 끊어진 뒤에 다시 호출해도 %s 작업이 두 번 처리되지 않습니다.",
	"응답 본문은 JSON 형식이고 새로운 필드가 언제든지 추가될 수 있으니, 모르는 필드는 무시하도록 구현하세요.",
	"%s 목록은 한 번에 최대 100건까지 조회되고, 다음 페이지는 커서로 이어서 가져옵니다.",
	"에러 코드는 프로그램이 판단하는 값이고 에러 메시지는 사람이 읽는 문장이므로, 분기 처리는 코드로 하세요.",
	"웹훅 서명은 별도의 비밀값으로 검증합니다. 본문을 읽기 전에 %s 알림의 서명을 먼저 비교하세요.",
	"금액은 통화의 가장 작은 단위로 표현한 정수입니다. 소수점 계산이 필요하지 않습니다.",
	"점검 시간에는 %s 조회만 가능하며, 쓰기가 다시 가능한 시각을 헤더로 안내합니다.",
	"모든 시각은 한국 표준시 기준의 ISO 8601 문자열로 내려가고, 초 단위까지 포함됩니다.",
	"관리자는 팀 구성원마다 %s 권한을 따로 부여할 수 있고, 변경 기록은 1년 동안 보관됩니다.",
	"동시에 두 요청이 같은 객체를 바꾸면 나중 요청은 409 응답을 받습니다. 최신 값을 읽고 다시 시도하세요.",
	"키를 교체할 때는 하루 동안 이전 키와 새 키를 모두 사용할 수 있어 서비스가 중단되지 않습니다.",
	"정산 자료는 매일 새벽에 만들어지며, %s 내역은 상점 관리자 화면에서 내려받을 수 있습니다.",
	"모바일 앱에서는 서버가 발급한 짧은 수명의 토큰만 사용하고, %s 요청을 앱에서 직접 보내지 마세요.",
	"지원 문의는 평일 오전 9시부터 오후 6시까지 받으며, 급한 장애는 상태 페이지에서 먼저 확인하세요.",
	"대량 처리는 최대 500건까지 묶어서 보낼 수 있고, 건마다 결과가 따로 내려갑니다.",
	"이전 버전은 새 버전이 나온 뒤 2년 동안 제공되고, 종료 여섯 달 전부터 응답 헤더로 알려 드립니다.",
	"브라우저에서 쓰는 클라이언트 키는 등록한 도메인에서만 동작하며 %s 승인에는 쓸 수 없습니다.",
	"테스트 카드 번호 목록은 문서 끝에 있고, 실제 카드사로는 아무 요청도 전달되지 않습니다.",
}

// sections are the made-up text of a page; the subject makes it the page's own.
func (p provider) sections(subject string) []Section {
	subject = strings.ReplaceAll(subject, "-", " ")
	out := p.outline(subject)
	of, most := remarks, 7
	if p.korean {
		of, most = koreanRemarks, 4
	}
	for i := range out {
		name := fnv.New64a()
		_, _ = name.Write([]byte(p.name + "/" + subject + "/" + out[i].Heading)) // a hash takes everything
		for _, n := range rand.New(rand.NewPCG(name.Sum64(), 0)).Perm(len(of))[:most] {
			out[i].Text += " " + strings.ReplaceAll(of[n], "%s", subject+" "+strings.ToLower(out[i].Heading))
		}
	}
	return out
}
