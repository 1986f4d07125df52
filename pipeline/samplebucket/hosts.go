package main

// The hosts of the sample are real public sites, because the same bucket is
// also used with the real network. A host is written as a browser shows it, so that
// the code under test has to handle www. and internationalised names.

var sgGov = []string{
	"www.mom.gov.sg", "www.moh.gov.sg", "www.moe.gov.sg", "www.mfa.gov.sg", "www.mof.gov.sg",
	"www.mas.gov.sg", "www.mti.gov.sg", "www.mnd.gov.sg", "www.mha.gov.sg", "www.mlaw.gov.sg",
	"www.msf.gov.sg", "www.mddi.gov.sg", "www.pmo.gov.sg", "www.hdb.gov.sg", "www.lta.gov.sg",
	"www.nea.gov.sg", "www.ura.gov.sg", "www.iras.gov.sg", "www.cpf.gov.sg", "www.ica.gov.sg",
	"www.tech.gov.sg", "www.imda.gov.sg", "www.nlb.gov.sg", "www.parliament.gov.sg",
}

var sgNews = []string{
	"www.straitstimes.com", "www.channelnewsasia.com", "www.todayonline.com", "mothership.sg",
	"www.businesstimes.com.sg", "www.zaobao.com.sg", "www.asiaone.com", "www.tnp.sg",
	"www.ntuc.org.sg", "www.redcross.sg",
}

var sgEdu = []string{
	"www.nus.edu.sg", "www.ntu.edu.sg", "www.smu.edu.sg", "www.sutd.edu.sg", "www.nie.edu.sg",
	"www.suss.edu.sg",
}

var krGov = []string{
	"www.mofa.go.kr", "www.moef.go.kr", "www.moe.go.kr", "www.mohw.go.kr", "www.mois.go.kr",
	"www.molit.go.kr", "www.motie.go.kr", "www.msit.go.kr", "www.mcst.go.kr", "www.moj.go.kr",
	"www.assembly.go.kr", "www.seoul.go.kr", "www.busan.go.kr", "www.kdca.go.kr", "www.scourt.go.kr",
	"www.korea.kr",
}

var krNews = []string{
	"www.yna.co.kr", "www.chosun.com", "www.joongang.co.kr", "www.donga.com", "www.hani.co.kr",
	"www.khan.co.kr", "www.hankookilbo.com", "www.koreaherald.com", "www.koreatimes.co.kr",
	"news.kbs.co.kr", "www.mk.co.kr", "www.hankyung.com", "www.ytn.co.kr",
}

var krEdu = []string{
	"www.snu.ac.kr", "www.kaist.ac.kr", "www.yonsei.ac.kr", "www.korea.ac.kr", "www.postech.ac.kr",
	"www.skku.edu", "www.hanyang.ac.kr", "www.ewha.ac.kr", "www.unist.ac.kr", "www.pusan.ac.kr",
	"www.kdi.re.kr", "www.kisa.or.kr",
}

var gbGov = []string{
	"www.gov.uk", "www.parliament.uk", "www.gov.scot", "www.gov.wales", "www.nhs.uk",
	"www.ons.gov.uk", "www.metoffice.gov.uk", "www.legislation.gov.uk", "www.nationalarchives.gov.uk",
	"www.london.gov.uk", "www.birmingham.gov.uk", "www.manchester.gov.uk", "www.leeds.gov.uk",
	"www.tax.service.gov.uk", "tfl.gov.uk", "www.ncsc.gov.uk", "www.ofcom.org.uk", "ico.org.uk",
	"www.fca.org.uk", "www.bankofengland.co.uk",
}

var gbNews = []string{
	"www.bbc.co.uk", "www.bbc.com", "www.theguardian.com", "www.independent.co.uk",
	"www.telegraph.co.uk", "www.thetimes.com", "www.ft.com", "news.sky.com", "www.economist.com",
	"www.standard.co.uk", "www.mirror.co.uk", "www.scotsman.com", "inews.co.uk",
}

var gbEdu = []string{
	"www.ox.ac.uk", "www.cam.ac.uk", "www.imperial.ac.uk", "www.ucl.ac.uk", "www.ed.ac.uk",
	"www.manchester.ac.uk", "www.kcl.ac.uk", "www.lse.ac.uk", "www.bristol.ac.uk",
	"warwick.ac.uk", "www.jisc.ac.uk", "www.ucas.com",
}

// gbTruncated are hosts of the truncated file only, so no run may send them a
// request.
var gbTruncated = []string{"www.gla.ac.uk", "www.open.ac.uk", "royalsociety.org", "www.britishmuseum.org"}

var deGov = []string{
	"www.bundesregierung.de", "www.bundestag.de", "www.bmi.bund.de", "www.bfarm.de",
	"www.bundesfinanzministerium.de", "www.auswaertiges-amt.de", "www.bmas.de", "www.bundesbank.de",
	"www.destatis.de", "www.bundesrat.de", "www.bundesverfassungsgericht.de", "www.berlin.de",
	"www.hamburg.de", "www.bayern.de", "www.rki.de",
}

var deNews = []string{
	"www.tagesschau.de", "www.zdf.de", "www.spiegel.de", "www.zeit.de", "www.faz.net",
	"www.sueddeutsche.de", "www.welt.de", "www.dw.com", "taz.de", "www.handelsblatt.com",
	"www.tagesspiegel.de", "www.heise.de", "www.deutschlandfunk.de",
}

var deEdu = []string{
	"www.tum.de", "www.lmu.de", "www.uni-heidelberg.de", "www.fu-berlin.de", "www.hu-berlin.de",
	"www.rwth-aachen.de", "www.kit.edu", "www.uni-bonn.de", "tu-dresden.de", "www.daad.de",
	"www.kmk.org", "www.mpg.de", "www.fraunhofer.de", "www.dfg.de",
}

// world has hosts that several countries name: one visit, several partitions.
var world = []string{"www.oecd.org", "www.who.int", "www.un.org", "www.unesco.org", "www.worldbank.org", "www.reuters.com"}
