"""Records what yt-dlp prints about posts, without the network.

usage: python3 record.py [FOLDER]     (with yt-dlp importable; FOLDER is this one by default)

yt-dlp itself runs, with the options that the bot gives it; only X's answers are made up here. For each case NAME it
writes NAME.out (standard output, when it succeeds) and NAME.err (standard error, when there is any), and prints NAME
with the exit code.
"""

import contextlib
import io
import os
import pathlib
import sys

import yt_dlp
from yt_dlp.extractor.twitter import TwitterIE

OPTIONS = [
    "--ignore-config", "--no-warnings", "--no-cache-dir", "-J", "--socket-timeout", "10",
    "--use-extractors", "twitter", "--", "https://x.com/i/status/20",
]
PLAYLIST = """#EXTM3U
#EXT-X-MEDIA:NAME="Audio",TYPE=AUDIO,GROUP-ID="audio-128000",AUTOSELECT=YES,URI="audio.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=2300000,RESOLUTION=1280x720,CODECS="mp4a.40.2,avc1.64001F",AUDIO="audio-128000"
video.m3u8
"""


def video(number, kind="video", rates=(632000, 2176000), duration=10704):
    folder = "tweet_video" if kind == "animated_gif" else f"amplify_video/{number}"
    base = f"https://video.twimg.com/{folder}"
    variants = [
        {"bitrate": rate, "content_type": "video/mp4", "url": f"{base}/vid/avc1/{size}/v{number}.mp4"}
        for rate, size in zip(rates, ("640x360", "1280x720"))
    ]
    if kind == "video":
        playlist = {"content_type": "application/x-mpegURL", "url": f"{base}/pl/all.m3u8"}
        variants.insert(0, playlist)
    return {
        "id_str": str(number), "type": kind, "media_url_https": f"https://pbs.twimg.com/media/thumb{number}.jpg",
        "sizes": {"small": {"w": 680, "h": 383}}, "original_info": {"width": 1280, "height": 720},
        "video_info": {"duration_millis": duration, "variants": variants},
    }


def tweet(media, links=(), sensitive=False):
    user = {"name": "Ann", "screen_name": "ann"}
    return {"tweetResult": {"result": {
        "__typename": "Tweet",
        "core": {"user_results": {"result": {"legacy": user}}},
        "legacy": {
            "full_text": "two words https://t.co/abc", "possibly_sensitive": sensitive,
            "created_at": "Mon Oct 26 12:00:00 +0000 2026", "user_id_str": "7",
            "extended_entities": {"media": media},
            "entities": {"urls": [{"expanded_url": link} for link in links]},
        },
    }}}


def unavailable(reason=None):
    return {"tweetResult": {"result": {"__typename": "TweetUnavailable", "reason": reason}}}


def tombstone(text):
    return {"tweetResult": {"result": {"__typename": "TweetTombstone", "tombstone": {"text": {"text": text}}}}}


CASES = {
    "video": tweet([video(1)], sensitive=True),
    "playlist": tweet([video(1), video(2, kind="animated_gif", rates=(0,), duration=0)]),
    "photo": tweet([{"id_str": "3", "type": "photo", "media_url_https": "https://pbs.twimg.com/media/A.jpg"}]),
    "link": tweet([], links=["https://example.org/page"]),
    "suspended": unavailable("Suspended"),
    "unavailable": unavailable(),
    "nsfw": unavailable("NsfwLoggedOut"),
    "protected": unavailable("Protected"),
    "deleted": tombstone("This Post was deleted by the Post author. Learn more"),
    "unknown": tombstone(""),
    "token": yt_dlp.utils.ExtractorError("Could not retrieve guest token"),
    "api": yt_dlp.utils.ExtractorError("Error(s) while querying API: Internal server error"),
    "bug": KeyError("legacy"),
    "http-404": 404,
    # It asks the syndication then, which is made up to be empty.
    "limited": 429,
    "http-503": 503,
}


def answer(ie, case, video_id):
    if isinstance(case, int):
        response = yt_dlp.networking.Response(io.BytesIO(), "https://api.x.com/", {}, status=case)
        cause = yt_dlp.networking.exceptions.HTTPError(response)
        raise yt_dlp.utils.ExtractorError(f"Unable to download JSON metadata: {cause}", cause=cause, expected=True)
    if isinstance(case, Exception):
        raise case
    return case


def playlist(ie, url, video_id, *rest, **named):
    return ie._parse_m3u8_formats_and_subtitles(PLAYLIST, url, "mp4", "m3u8_native", m3u8_id="hls")


def syndication(ie, video_id):
    raise yt_dlp.utils.ExtractorError("Syndication endpoint returned empty JSON response")


def record(name, case, folder):
    TwitterIE._call_syndication_api = syndication
    TwitterIE._call_graphql_api = lambda ie, endpoint, video_id: answer(ie, case, video_id)
    TwitterIE._extract_m3u8_formats_and_subtitles = playlist
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = yt_dlp._real_main(OPTIONS)
        except SystemExit as end:
            code = end.code
        except yt_dlp.utils.DownloadError:
            code = 1
    if not code:
        (folder / f"{name}.out").write_text(out.getvalue())
    if err.getvalue():
        (folder / f"{name}.err").write_text(err.getvalue())
    print(name, int(code or 0))


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))).resolve()
    # The folder it is run in stands in its output.
    os.chdir("/")
    for each, made_up in CASES.items():
        record(each, made_up, target)
