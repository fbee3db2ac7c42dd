//! Small picture files, built part by part. Pixel data is made up: this room never looks into it.

/// A text that must not survive, in every place where metadata lives.
pub(super) const CANARY: &[u8] = b"CANARY 51.4779 N 0.0015 W";

/// EXIF data with one directory that holds the orientation and one other tag.
pub(super) fn exif(big_endian: bool, orientation: u16) -> Vec<u8> {
    let b16 = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let b32 = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = if big_endian { b"MM".to_vec() } else { b"II".to_vec() };
    bytes.extend(b16(42));
    bytes.extend(b32(8));
    bytes.extend(b16(2));
    for (tag, kind, value) in [(0x010F, 2, 0), (0x0112, 3, orientation)] {
        bytes.extend(b16(tag));
        bytes.extend(b16(kind));
        bytes.extend(b32(1));
        bytes.extend(b16(value));
        bytes.extend(b16(0));
    }
    bytes.extend(b32(0));
    bytes.extend(CANARY);
    bytes
}

fn sub_blocks(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for block in data.chunks(255) {
        bytes.push(u8::try_from(block.len()).unwrap());
        bytes.extend(block);
    }
    bytes.push(0);
    bytes
}

pub(super) fn gif_header(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
    bytes
}

pub(super) fn gif_extension(label: u8, head: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x21, label];
    if !head.is_empty() {
        bytes.push(u8::try_from(head.len()).unwrap());
        bytes.extend(head);
    }
    bytes.extend(sub_blocks(data));
    bytes
}

pub(super) fn gif_control(hundredths: u16, transparent: bool) -> Vec<u8> {
    let [low, high] = hundredths.to_le_bytes();
    vec![0x21, 0xF9, 4, u8::from(transparent), low, high, 0, 0]
}

pub(super) fn gif_image(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = vec![0x2C, 0, 0, 0, 0];
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0, 2]);
    bytes.extend(sub_blocks(b"\x84\x51gif pixels"));
    bytes
}

pub(super) fn gif_loop() -> Vec<u8> {
    gif_extension(0xFF, b"NETSCAPE2.0", &[1, 0, 0])
}

/// An animated GIF with one frame for each delay, and metadata when asked for.
pub(super) fn gif(delays: &[u16], metadata: bool) -> Vec<u8> {
    let mut bytes = gif_header(8, 6);
    bytes.extend(gif_loop());
    for &delay in delays {
        bytes.extend(gif_control(delay, false));
        if metadata {
            bytes.extend(gif_extension(0xFE, &[], CANARY));
            bytes.extend(gif_extension(0xFF, b"XMP DataXMP", CANARY));
            bytes.extend(gif_extension(0x01, &[0; 12], CANARY));
            bytes.push(0);
        }
        bytes.extend(gif_image(8, 6));
    }
    bytes.push(0x3B);
    if metadata {
        bytes.extend(CANARY);
    }
    bytes
}

pub(super) fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).unwrap();
    [size.to_be_bytes().as_slice(), kind, data, b"crc!"].concat()
}

pub(super) fn png_header(width: u32, height: u32, bit_depth: u8, colour: u8) -> Vec<u8> {
    let mut data = width.to_be_bytes().to_vec();
    data.extend(height.to_be_bytes());
    data.extend([bit_depth, colour, 0, 0, 0]);
    [b"\x89PNG\r\n\x1A\n".as_slice(), &png_chunk(b"IHDR", &data)].concat()
}

pub(super) const IEND: &[u8] = b"\0\0\0\0IEND\xAE\x42\x60\x82";

pub(super) fn png_frame(numerator: u16, denominator: u16) -> Vec<u8> {
    let mut data = vec![0; 20];
    data.extend(numerator.to_be_bytes());
    data.extend(denominator.to_be_bytes());
    data.extend([0, 0]);
    png_chunk(b"fcTL", &data)
}

/// A PNG with one frame for each delay if it is animated, and metadata when asked for.
pub(super) fn png(delays: &[(u16, u16)], metadata: bool) -> Vec<u8> {
    let mut bytes = png_header(7, 5, 8, 6);
    bytes.extend(png_chunk(b"gAMA", &[0, 0, 0xB1, 0x8F]));
    bytes.extend(png_chunk(b"iCCP", b"icc\0\0profile"));
    if metadata {
        bytes.extend(png_chunk(b"tEXt", CANARY));
        bytes.extend(png_chunk(b"iTXt", CANARY));
        bytes.extend(png_chunk(b"eXIf", &exif(true, 6)));
        bytes.extend(png_chunk(b"tIME", &CANARY[..7]));
        bytes.extend(png_chunk(b"pHYs", CANARY));
        bytes.extend(png_chunk(b"caBX", CANARY));
    }
    if !delays.is_empty() {
        let frames = u32::try_from(delays.len()).unwrap();
        bytes.extend(png_chunk(b"acTL", &[frames.to_be_bytes(), [0; 4]].concat()));
    }
    for (index, &(numerator, denominator)) in delays.iter().enumerate() {
        bytes.extend(png_frame(numerator, denominator));
        if index > 0 {
            bytes.extend(png_chunk(b"fdAT", b"\0\0\0\x02frame pixels"));
        } else {
            bytes.extend(png_chunk(b"IDAT", b"png pixels"));
        }
    }
    if delays.is_empty() {
        bytes.extend(png_chunk(b"IDAT", b"png pixels"));
    }
    if metadata {
        bytes.extend(png_chunk(b"zTXt", CANARY));
    }
    bytes.extend(IEND);
    if metadata {
        bytes.extend(CANARY);
    }
    bytes
}

pub(super) fn jpeg_segment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(payload.len() + 2).unwrap();
    [&[0xFF, kind], size.to_be_bytes().as_slice(), payload].concat()
}

pub(super) const JPEG_SCAN: &[u8] = b"\x12\x34\xFF\x00\x56\xFF\xD0\x78 jpeg pixels";

/// A JPEG with EXIF data of this orientation and other metadata when asked for.
pub(super) fn jpeg(orientation: Option<u16>, metadata: bool) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    let thumbnail = if metadata { [&[5, 1], &CANARY[..15]].concat() } else { vec![0, 0] };
    bytes.extend(jpeg_segment(0xE0, &[b"JFIF\0\x01\x02\0\0\x01\0\x01".as_slice(), &thumbnail].concat()));
    if let Some(orientation) = orientation {
        bytes.extend(jpeg_segment(0xE1, &[b"Exif\0\0".as_slice(), &exif(false, orientation)].concat()));
    }
    if metadata {
        bytes.extend(jpeg_segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0".as_slice(), CANARY].concat()));
        bytes.extend(jpeg_segment(0xED, &[b"Photoshop 3.0\0".as_slice(), CANARY].concat()));
        bytes.extend(jpeg_segment(0xE2, &[b"MPF\0".as_slice(), CANARY].concat()));
        bytes.extend(jpeg_segment(0xFE, CANARY));
    }
    bytes.extend(jpeg_segment(0xE2, b"ICC_PROFILE\0\x01\x01profile"));
    bytes.extend(jpeg_segment(0xEE, b"Adobe\0\x64\0\0\0\0\x01"));
    bytes.extend(jpeg_segment(0xDB, &[1; 65]));
    bytes.extend(jpeg_segment(0xC2, &[8, 0, 40, 0, 60, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]));
    for _ in 0..2 {
        bytes.extend(jpeg_segment(0xC4, &[0; 28]));
        bytes.extend(jpeg_segment(0xDA, &[1, 1, 0, 0, 63, 0]));
        bytes.extend(JPEG_SCAN);
        if metadata {
            bytes.extend(jpeg_segment(0xFE, CANARY));
        }
    }
    bytes.extend([0xFF, 0xD9]);
    if metadata {
        bytes.extend(CANARY);
    }
    bytes
}

pub(super) fn riff_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).unwrap();
    let mut bytes = [kind.as_slice(), &size.to_le_bytes(), data].concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

pub(super) fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    let size = u32::try_from(body.len() + 4).unwrap();
    [b"RIFF".as_slice(), &size.to_le_bytes(), b"WEBP", &body].concat()
}

pub(super) fn vp8x(flags: u8, width: u32, height: u32) -> Vec<u8> {
    let mut data = vec![flags, 0, 0, 0];
    data.extend(&(width - 1).to_le_bytes()[..3]);
    data.extend(&(height - 1).to_le_bytes()[..3]);
    riff_chunk(b"VP8X", &data)
}

pub(super) fn vp8(width: u16, height: u16) -> Vec<u8> {
    let mut data = vec![0x10, 0, 0, 0x9D, 0x01, 0x2A];
    data.extend(width.to_le_bytes());
    data.extend(height.to_le_bytes());
    data.extend(b"lossy pixels!");
    riff_chunk(b"VP8 ", &data)
}

pub(super) fn vp8l(width: u32, height: u32, alpha: bool) -> Vec<u8> {
    let bits = (width - 1) | ((height - 1) << 14) | (u32::from(alpha) << 28);
    riff_chunk(b"VP8L", &[&[0x2F], bits.to_le_bytes().as_slice(), b"lossless pixels"].concat())
}

pub(super) fn anmf(x: u32, y: u32, size: (u32, u32), duration: u32, flags: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for field in [x / 2, y / 2, size.0 - 1, size.1 - 1, duration] {
        data.extend(&field.to_le_bytes()[..3]);
    }
    data.push(flags);
    data.extend(parts.concat());
    riff_chunk(b"ANMF", &data)
}

/// A still WebP in the extended form.
pub(super) fn webp(metadata: bool) -> Vec<u8> {
    let mut chunks = vec![vp8x(if metadata { 0x3C } else { 0x30 }, 9, 4), riff_chunk(b"ICCP", b"profile")];
    chunks.push(riff_chunk(b"ALPH", b"\x00alpha pixels"));
    chunks.push(vp8(9, 4));
    if metadata {
        chunks.push(riff_chunk(b"EXIF", &exif(false, 8)));
        chunks.push(riff_chunk(b"XMP ", CANARY));
        chunks.push(riff_chunk(b"junk", CANARY));
    }
    let mut bytes = riff(&chunks);
    if metadata {
        bytes.extend(CANARY);
    }
    bytes
}

/// An animated WebP of three frames: lossy, lossy with transparency, lossless.
pub(super) fn webp_animation(metadata: bool) -> Vec<u8> {
    let extra = || if metadata { riff_chunk(b"junk", CANARY) } else { Vec::new() };
    let mut chunks = vec![
        vp8x(if metadata { 0x1E } else { 0x12 }, 20, 16),
        riff_chunk(b"ANIM", &[1, 2, 3, 4, 0, 0]),
        anmf(0, 0, (20, 16), 40, 0, &[extra(), vp8(20, 16)]),
        anmf(4, 2, (8, 8), 10, 3, &[riff_chunk(b"ALPH", b"\x01alpha"), vp8(8, 8), extra()]),
        anmf(0, 0, (5, 3), 11, 1, &[vp8l(5, 3, false), extra()]),
    ];
    if metadata {
        chunks.push(riff_chunk(b"EXIF", &exif(true, 1)));
        chunks.push(riff_chunk(b"XMP ", CANARY));
    }
    riff(&chunks)
}
