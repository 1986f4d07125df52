"""crawl4ai with robots.txt (docs.crawl4ai.com/advanced/multi-url-crawling, "Robots.txt"), the dispatcher with
the rate limiter that this page describes (its default in arun_many), its HTTP strategy (no browser), and one resumable breadth-first crawl for each site
(core/deep-crawling, "Crash recovery").
"""
import asyncio
import json
import os
from urllib.parse import urlsplit

from web import AGENT, DEPTH, SEEDS, STATE, reason

from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy


async def site(crawler, url):
    path = os.path.join(STATE, urlsplit(url).hostname + ".json")
    state = json.load(open(path)) if os.path.exists(path) else None
    if state == "done":
        return

    async def save(now):
        with open(path + ".new", "w") as f:
            json.dump(now, f)
        os.replace(path + ".new", path)

    config = CrawlerRunConfig(
        check_robots_txt=True, cache_mode=CacheMode.BYPASS, verbose=False, user_agent=None,
        deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=DEPTH, resume_state=state, on_state_change=save))
    for result in await crawler.arun(url, config=config):
        if not result.success:
            reason(result.url, result.error_message)
    await save("done")


async def main():
    strategy = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(headers={"User-Agent": AGENT}))
    async with AsyncWebCrawler(crawler_strategy=strategy, config=BrowserConfig(user_agent=AGENT, verbose=False)) as crawler:
        limits = asyncio.Semaphore(8)  # sites at a time

        async def one(url):
            async with limits:
                await site(crawler, url)

        await asyncio.gather(*map(one, SEEDS))


asyncio.run(main())
