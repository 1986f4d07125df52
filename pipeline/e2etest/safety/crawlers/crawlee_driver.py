"""Crawlee with robots.txt and the throttling manager of its guide (crawlee.dev/python/docs/guides/request-throttling);
a named queue that is not purged, so that a crawl can be resumed (examples/resuming-paused-crawl).
"""
import asyncio
from urllib.parse import urlsplit

from web import AGENT, DEPTH, SEEDS, STATE, reason

from crawlee import ConcurrencySettings, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import BeautifulSoupCrawler
from crawlee.http_clients import HttpxHttpClient
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storages import RequestQueue

service_locator.set_configuration(Configuration(storage_dir=STATE, purge_on_start=False))


async def main():
    queue = await RequestQueue.open()
    crawler = BeautifulSoupCrawler(
        respect_robots_txt_file=True, max_crawl_depth=DEPTH, configure_logging=False,
        http_client=HttpxHttpClient(headers={"User-Agent": AGENT}, header_generator=None),
        concurrency_settings=ConcurrencySettings(desired_concurrency=8, max_concurrency=16),
        request_manager=ThrottlingRequestManager(queue, domains=[urlsplit(u).hostname for u in SEEDS], request_manager_opener=RequestQueue.open),
    )

    @crawler.router.default_handler
    async def handle(context):
        await context.enqueue_links(strategy="same-hostname")

    @crawler.failed_request_handler
    async def failed(context, error):
        reason(context.request.url, repr(error))

    @crawler.on_skipped_request
    async def skipped(url, why):
        reason(url, why)

    await crawler.run(SEEDS)


asyncio.run(main())
