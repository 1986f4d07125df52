"""Scrapy with the settings of its own project template (scrapy startproject, since 2.13), AutoThrottle
(docs.scrapy.org/en/latest/topics/autothrottle.html) and JOBDIR (topics/jobs.html).
"""
from web import AGENT, DEPTH, SEEDS, STATE, reason

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Safety(scrapy.Spider):
    name = "safety"
    links = LinkExtractor()

    async def start(self):
        for url in SEEDS:  # as Scrapy's own start does
            yield scrapy.Request(url, self.parse, errback=self.failed, dont_filter=True)

    def parse(self, response):
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url, self.parse, errback=self.failed)

    def failed(self, failure):
        reason(failure.request.url, repr(failure.value))


process = CrawlerProcess({
    "ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 1, "USER_AGENT": AGENT,
    "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 1, "JOBDIR": STATE, "DEPTH_LIMIT": DEPTH, "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Safety)
process.start()
