"""How each clip is made: which material, which filters, which rate. Every recipe is deterministic."""

from dataclasses import dataclass
from enum import Enum


class Sound(Enum):
    """What is heard beside the pictures."""

    NONE = "silent"
    TRAILER = "music and effects of the trailer"
    ROOM = "a room with a hand's noises, by a phone"


@dataclass(frozen=True)
class Recipe:
    """A clip: inputs and a filter graph that ends in `[v]`, and how it is stored.

    An input is a word list for `ffmpeg`; `{key}` stands for the material of that name, `@name` for a drawn picture or,
    with `=name`, for another clip.
    """

    name: str
    what: str
    seconds: int
    width: int
    height: int
    rate: str
    # Mean rate of the stored video in kbit/s, as a phone or a site would choose.
    kbps: int
    # Most seconds between key frames.
    gop: int
    sound: Sound
    inputs: tuple[str, ...]
    graph: str

    def material(self) -> set[str]:
        """The keys of the material that this clip needs."""
        words = " ".join(self.inputs).split()
        keys = {word[1:-1] for word in words if word.startswith("{")}
        return keys | ({"trailer"} if self.sound is Sound.TRAILER else {"box"} if self.sound is Sound.ROOM else set())

    def clips(self) -> set[str]:
        """The names of other clips that this one is made of."""
        return {word[1:] for word in " ".join(self.inputs).split() if word.startswith("=")}


def _fill(width: int, height: int, rate: str = "30") -> str:
    """Covers the frame whatever the shape of the material; smooth enlargement."""
    return (f"scale={width}:{height}:force_original_aspect_ratio=increase:flags=lanczos:out_color_matrix=bt709:"
            f"out_range=tv,crop={width}:{height},fps={rate},setsar=1,format=yuv420p")


def _hand(width: int, height: int) -> str:
    """The sway and tremor of a hand, on a picture a tenth larger than the frame."""
    wide, high = round(width * 1.12 / 2) * 2, round(height * 1.12 / 2) * 2
    return (f"scale={wide}:{high}:force_original_aspect_ratio=increase:flags=lanczos:out_color_matrix=bt709:out_range=tv,"
            f"crop={width}:{height}:x='(iw-ow)/2+(iw-ow)*(0.30*sin(t*4.4)+0.12*sin(t*14.5))':"
            "y='(ih-oh)/2+(ih-oh)*(0.28*sin(t*6.9+1)+0.10*sin(t*19.5))',setsar=1,format=yuv420p")


def _flight(size: str, rate: int, frames: int, x: str, y: str, zoom: str) -> str:
    """A camera over a photograph. `on` in the expressions counts frames."""
    return (f"zoompan=z='{zoom}':x='{x}':y='{y}':d={frames}:s={size}:fps={rate},"
            "scale=out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p")


def _concat(parts: int, first: str = "") -> str:
    return (first or "".join(f"[p{part}]" for part in range(parts))) + f"concat=n={parts}:v=1"


def _sport() -> str:
    """Five shots of four seconds: whip pans, a tracking shot, a fast zoom."""
    shots = (
        ("0", "iw/2-iw/zoom/2+(iw-iw/zoom)*0.48*sin(on/19)", "ih*0.3+60*sin(on/5)", "1.9"),
        ("1", "iw/2-iw/zoom/2+(iw-iw/zoom)*0.45*sin(on/11)", "ih/2-ih/zoom/2+(ih-ih/zoom)*0.4*cos(on/17)", "2.2"),
        ("2", "(iw-iw/zoom)*mod(on/40,1)", "ih*0.35+25*sin(on/4)", "1.8"),
        ("1", "iw/2-iw/zoom/2", "ih/2-ih/zoom/2", "1.4+1.2*abs(sin(on/28))"),
        ("3", "iw/2-iw/zoom/2+(iw-iw/zoom)*0.45*cos(on/13)", "(ih-ih/zoom)*(0.5+0.4*sin(on/9))", "2"),
    )
    uses = {source: sum(shot[0] == source for shot in shots) for source, *_ in shots}
    lines = [f"[1:v]split={uses['1']}[s1a][s1b]"]
    taken = iter(("[s1a]", "[s1b]"))
    for number, (source, x, y, zoom) in enumerate(shots):
        pad = next(taken) if source == "1" else f"[{source}:v]"
        lines.append(f"{pad}{_flight('1280x720', 30, 120, x, y, zoom)}[p{number}]")
    # Two pictures blended are the blur of an open shutter.
    return ";".join(lines) + ";" + _concat(5) + ",tmix=frames=2,noise=alls=3:allf=t:all_seed=5[v]"


def _fades() -> str:
    """Six scenes of five seconds that run into each other, from black and back to it."""
    size = "1920x1080"
    slow = [
        _flight(size, 30, 150, "(iw-iw/zoom)*on/150", "(ih-ih/zoom)/2", "1.15"),
        _flight(size, 30, 150, "(iw-iw/zoom)/2", "(ih-ih/zoom)*(1-on/150)", "1.1+on/1500"),
        _flight(size, 30, 150, "(iw-iw/zoom)/2", "(ih-ih/zoom)/2", "1.25-on/900"),
    ]
    live = _fill(1920, 1080) + ",trim=duration=5,setpts=PTS-STARTPTS"
    scenes = [f"[0:v]{slow[0]}[p0]", f"[1:v]{live}[p1]", f"[2:v]{slow[1]}[p2]", f"[3:v]{live}[p3]",
              f"[4:v]{slow[2]}[p4]", f"[5:v]{live}[p5]"]
    joins, last = [], "[p0]"
    for number, kind in enumerate(("fade", "dissolve", "fadeblack", "fadewhite", "wipeleft"), start=1):
        joins.append(f"{last}[p{number}]xfade=transition={kind}:duration=1:offset={4 * number}[j{number}]")
        last = f"[j{number}]"
    scenes = [scene.replace("[p", ",settb=1/30[p") if scene.startswith("[") else scene for scene in scenes]
    return ";".join(scenes + joins) + f";{last}fade=in:d=1,fade=out:st=24:d=1,noise=alls=2:allf=t:all_seed=6[v]"


def _mixed() -> str:
    """Cuts between animation, streets, a fractal and a noisy card, each several times."""
    parts = []
    order = ((0, 3, 6), (1, 0, 7), (2, 0, 6), (3, 0, 5), (0, 14, 7), (1, 3, 6), (2, 8, 5), (0, 27, 6), (3, 5, 4))
    used: dict[int, int] = {source: 0 for source in range(4)}
    for source, _, _ in order:
        used[source] += 1
    treat = (_fill(1280, 720), _hand(1280, 720) + ",noise=alls=5:allf=t:all_seed=3,fps=30", _fill(1280, 720),
             "noise=alls=24:allf=t:all_seed=4," + _fill(1280, 720))
    for source, count in used.items():
        parts.append(f"[{source}:v]{treat[source]},split={count}" + "".join(f"[s{source}n{n}]" for n in range(count)))
    used = {source: 0 for source in range(4)}
    for number, (source, start, length) in enumerate(order):
        parts.append(f"[s{source}n{used[source]}]trim=start={start}:duration={length},setpts=PTS-STARTPTS[p{number}]")
        used[source] += 1
    return ";".join(parts) + ";" + _concat(len(order)) + "[v]"


def _portrait() -> str:
    """Two halves, one above the other, and captions over the seam."""
    captions = ";".join(
        f"[c{n}][{n + 2}:v]overlay=0:895:enable='between(t,{start},{start + 5})'[c{n + 1}]"
        for n, start in enumerate((1, 7, 14))
    )
    return (f"[0:v]{_hand(1080, 960)},fps=30,noise=alls=4:allf=t:all_seed=8[a];"
            f"[1:v]{_fill(1080, 960)},noise=alls=3:allf=t:all_seed=9[b];[a][b]vstack[c0];{captions};"
            "[c3]format=yuv420p[v]")


def _long() -> str:
    parts = [
        f"[{n}:v]scale=1280:720:force_original_aspect_ratio=increase:flags=bicubic,crop=1280:720,fps=30,setsar=1,"
        f"format=yuv420p[p{n}]" for n in range(len(LONG_PARTS))
    ]
    return ";".join(parts) + ";" + _concat(len(LONG_PARTS)) + "[v]"


PING_PONG = "split[f][g];[g]reverse[r];[f][r]concat=n=2:v=1"
LONG_PARTS = ("animation", "handheld", "street", "talking", "sport", "screen", "fades", "dark", "mixed", "noise", "sixty",
              "hard")

RECIPES = (
    Recipe("animation", "rendered animation with titles", 40, 1280, 720, "24", 2200, 4, Sound.TRAILER,
           ("-ss 3 -i {trailer}",), f"[0:v]{_fill(1280, 720, '24')}[v]"),
    Recipe("handheld", "a street filmed by hand", 20, 1280, 720, "25", 3500, 2, Sound.ROOM,
           ("-i {bikes}", "-i {bikes}"),
           f"[1:v]hflip[m];[0:v][m]concat=n=2:v=1,{_hand(1280, 720)},noise=alls=4:allf=t:all_seed=1[v]"),
    Recipe("talking", "a talking head", 16, 1280, 720, "30000/1001", 2000, 4, Sound.ROOM,
           ("-i {carphone}",),
           f"[0:v]{PING_PONG},loop=loop=1:size=240,setpts=N/(30000/1001)/TB,{_fill(1280, 720, '30000/1001')},"
           "noise=alls=3:allf=t:all_seed=2[v]"),
    Recipe("noise", "streets and a hand in strong sensor noise", 18, 1280, 720, "30", 5000, 3, Sound.ROOM,
           ("-i {bikes}", "-i {cup}"),
           f"[0:v]{_fill(1280, 720)}[a];[1:v]{_fill(1280, 720)},trim=duration=8[b];[a][b]concat=n=2:v=1,"
           "noise=alls=20:allf=t:all_seed=7[v]"),
    Recipe("screen", "an editor and a terminal with text", 30, 1920, 1080, "30", 2000, 4, Sound.NONE,
           ("-loop 1 -framerate 30 -t 20 -i @code.png", "-loop 1 -framerate 30 -t 10 -i @terminal.png",
            "-loop 1 -framerate 30 -t 30 -i @pointer.png"),
           # The page rests, then rolls on by half a screen within half a second.
           "[0:v]crop=1920:1080:0:'floor((540*floor(t/2)+540*clip((mod(t,2)-1.5)*2,0,1))/2)*2'[a];"
           "[1:v]crop=1920:1080:0:'27*floor(t*14)'[b];[a][b]concat=n=2:v=1[c];"
           "[c][2:v]overlay=x='900+500*sin(t/2)':y='500+300*sin(t/3)':eval=frame,"
           "scale=out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p[v]"),
    Recipe("sport", "fast pans and zooms over fine detail", 20, 1280, 720, "30", 5000, 2, Sound.ROOM,
           ("-i {forest}", "-i {moss}", "-i {boats}", "-i {leaf}"), _sport()),
    Recipe("dark", "a dim room", 22, 1280, 720, "30", 2500, 3, Sound.ROOM,
           ("-i {box}", "-i {cup}"),
           f"[0:v]{_fill(1280, 720)},trim=duration=15,setpts=PTS-STARTPTS[a];"
           f"[1:v]{_fill(1280, 720)},trim=duration=7,setpts=PTS-STARTPTS[b];[a][b]concat=n=2:v=1,"
           "eq=gamma=0.55:brightness=-0.10:saturation=0.7,noise=alls=6:allf=t:all_seed=10[v]"),
    Recipe("fades", "scenes that run into each other", 25, 1920, 1080, "30", 4000, 4, Sound.TRAILER,
           ("-i {boats}", "-ss 8 -i {trailer}", "-i {leaf}", "-ss 4 -i {bikes}", "-i {kite}", "-ss 2 -i {box}"),
           _fades()),
    Recipe("sixty", "a game at 60 frames a second", 20, 1280, 720, "60", 4500, 4, Sound.TRAILER,
           ("-i {forest}", "-i {boats}", "-loop 1 -framerate 60 -t 20 -i @display.png"),
           "[0:v]" + _flight("1280x720", 60, 600, "(iw-iw/zoom)*(0.5+0.45*sin(on/95))", "(ih-ih/zoom)*(0.6+0.2*cos(on/61))",
                             "1.5+0.4*sin(on/140)") + "[a];"
           "[1:v]" + _flight("1280x720", 60, 600, "(iw-iw/zoom)*(0.5+0.4*cos(on/77))", "(ih-ih/zoom)*(0.6+0.3*sin(on/53))",
                             "1.8+0.5*sin(on/90)") + "[b];[a][b]concat=n=2:v=1[c];[c][2:v]overlay,format=yuv420p[v]"),
    Recipe("portrait", "two portrait halves with captions", 20, 1080, 1920, "30", 4000, 2, Sound.ROOM,
           ("-stream_loop 1 -i {bikes}", "-stream_loop 4 -i {carphone}", "-loop 1 -framerate 30 -t 20 -i @caption1.png",
            "-loop 1 -framerate 30 -t 20 -i @caption2.png", "-loop 1 -framerate 30 -t 20 -i @caption3.png"), _portrait()),
    Recipe("short", "three seconds from a phone", 3, 1280, 720, "30", 4000, 2, Sound.ROOM,
           ("-ss 4 -i {box}",), f"[0:v]{_fill(1280, 720)}[v]"),
    Recipe("street", "people on a square, ten frames a second", 40, 768, 576, "10", 1200, 4, Sound.NONE,
           ("-i {street}",), "[0:v]scale=out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p[v]"),
    Recipe("tree", "leaves in the wind, old and small", 24, 640, 480, "15", 900, 4, Sound.NONE,
           ("-i {tree}",), f"[0:v]{_fill(640, 480, '15')}[v]"),
    Recipe("mixed", "cuts between animation, streets, a fractal and noise", 52, 1280, 720, "30", 2200, 4, Sound.TRAILER,
           ("-i {trailer}", "-i {bikes}", "-f lavfi -i mandelbrot=s=640x360:r=30:end_pts=500:end_scale=0.0005",
            "-f lavfi -i testsrc2=s=1280x720:r=30"), _mixed()),
    Recipe("hard", "easy animation first, then noise that is far dearer", 21, 1280, 720, "30", 4000, 4, Sound.TRAILER,
           ("-ss 0 -i {trailer}", "-i {moss}"),
           f"[0:v]{_fill(1280, 720)},trim=duration=11,setpts=PTS-STARTPTS[a];"
           "[1:v]" + _flight("1280x720", 30, 300, "(iw-iw/zoom)*(0.5+0.4*sin(on/25))", "(ih-ih/zoom)/2", "1.8")
           + ",noise=alls=30:allf=t:all_seed=12[b];[a][b]concat=n=2:v=1[v]"),
    Recipe("long", "five minutes of all of these", 300, 1280, 720, "30", 2500, 4, Sound.TRAILER,
           tuple(f"-i ={name}" for name in LONG_PARTS), _long()),
)
