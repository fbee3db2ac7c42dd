//! Filter graphs: decoded frames in, frames as the encoder wants them out.

use std::fmt::Write;
use std::ptr;

use ffmpeg_next::ffi as sys;

use super::frame::sample_format_name;
use super::{Answer, Fault, Frame, PictureShape, SoundShape, c_string};
use crate::error::Error;
use crate::media::{DynamicRange, Orientation};
use crate::units::Dimensions;

/// What shall happen to pictures on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PicturePath {
    /// Size of the result, upright.
    pub(crate) target: Dimensions,
    /// Size of the picture in the middle of it, upright; what is left is black.
    pub(crate) inside: Dimensions,
    pub(crate) orientation: Orientation,
    pub(crate) deinterlace: bool,
    pub(crate) pixels: PixelTarget,
}

/// How the resulting pixels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PixelTarget {
    /// 8-bit 4:2:0 in limited-range BT.709, transparency over black: video.
    Video,
    /// 8-bit 4:2:0 in full range, transparency over black: JPEG.
    Jpeg,
    /// 8-bit RGBA.
    Rgba,
}

/// What shall happen to sound on its way: resampled, mixed, as planar floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoundPath {
    pub(crate) sample_rate: u32,
    /// 1 or 2.
    pub(crate) channels: u32,
}

/// A configured graph with one way in and one way out.
#[derive(Debug)]
pub(crate) struct Graph {
    graph: *mut sys::AVFilterGraph,
    source: *mut sys::AVFilterContext,
    sink: *mut sys::AVFilterContext,
    tag_bt709: bool,
}

// SAFETY: the graph runs on the thread that calls it (its own thread count is one), has no thread-local state,
// and this value is its only owner.
unsafe impl Send for Graph {}

/// Whether this build has a filter of this name.
pub(super) fn filter_exists(name: &str) -> bool {
    let name = c_string(name);
    // SAFETY: the name lives through the call.
    !unsafe { sys::avfilter_get_by_name(name.as_ptr()) }.is_null()
}

impl Graph {
    /// A graph for pictures of `shape`.
    ///
    /// # Errors
    /// `Unsupported` when no filter can convert such pictures.
    pub(crate) fn pictures(shape: &PictureShape, path: &PicturePath) -> Result<Self, Error> {
        let source = format!(
            "video_size={}x{}:pix_fmt={}:time_base=1/1000000:pixel_aspect=1/1{}",
            shape.dimensions.width,
            shape.dimensions.height,
            shape.format,
            color_arguments(shape),
        );
        let mut graph = Self::build("buffer", &source, &picture_chain(shape, path), "buffersink")?;
        graph.tag_bt709 = path.pixels == PixelTarget::Video;
        Ok(graph)
    }

    /// A graph for sound of `shape`.
    ///
    /// # Errors
    /// `Unsupported` when no filter can convert such sound.
    pub(crate) fn sound(shape: &SoundShape, path: &SoundPath) -> Result<Self, Error> {
        let format = sample_format_name(shape.format)
            .ok_or_else(|| Error::unsupported("the sound is stored in an unknown way"))?;
        let source = format!(
            "time_base=1/1000000:sample_rate={}:sample_fmt={format}:channel_layout={}",
            shape.sample_rate, shape.layout
        );
        let layout = if path.channels == 1 { "mono" } else { "stereo" };
        let chain = format!(
            "aresample={},aformat=sample_fmts=fltp:sample_rates={}:channel_layouts={layout}",
            path.sample_rate, path.sample_rate
        );
        Self::build("abuffer", &source, &chain, "abuffersink")
    }

    fn build(source_name: &str, arguments: &str, chain: &str, sink_name: &str) -> Result<Self, Error> {
        super::init();
        // SAFETY: a plain allocation; checked for null.
        let graph = unsafe { sys::avfilter_graph_alloc() };
        if graph.is_null() {
            return Err(Error::internal("out of memory"));
        }
        let mut this = Self { graph, source: ptr::null_mut(), sink: ptr::null_mut(), tag_bt709: false };
        // SAFETY: the graph is ours and not configured yet.
        unsafe { (*graph).nb_threads = 1 };
        this.source = this.create(source_name, "in", Some(arguments))?;
        this.sink = this.create(sink_name, "out", None)?;
        this.connect(chain).map_err(|fault| {
            tracing::debug!(arguments, chain, reason = fault.text(), "a filter graph cannot be set up");
            Error::unsupported(format!("no filter can convert this stream: {}", fault.text()))
        })?;
        Ok(this)
    }

    fn create(
        &mut self,
        filter: &str,
        name: &str,
        arguments: Option<&str>,
    ) -> Result<*mut sys::AVFilterContext, Error> {
        let (filter_c, name) = (c_string(filter), c_string(name));
        let arguments = arguments.map(c_string);
        let mut context = ptr::null_mut();
        // SAFETY: all strings live through the call; the filter is a static object; the graph owns the result.
        let code = unsafe {
            let definition = sys::avfilter_get_by_name(filter_c.as_ptr());
            if definition.is_null() {
                return Err(Error::unsupported(format!("this build of libav has no filter {filter}")));
            }
            let arguments = arguments.as_ref().map_or(ptr::null(), |text| text.as_ptr());
            sys::avfilter_graph_create_filter(
                &raw mut context,
                definition,
                name.as_ptr(),
                arguments,
                ptr::null_mut(),
                self.graph,
            )
        };
        Fault::check(code).map_err(|fault| {
            Error::unsupported(format!("the stream cannot be filtered: {}", fault.text()))
        })?;
        Ok(context)
    }

    fn connect(&mut self, chain: &str) -> Result<(), Fault> {
        let chain = c_string(chain);
        // SAFETY: the in/out lists are allocated here, filled with copies that libav owns, and freed whatever
        // happens; source and sink are filters of this graph.
        unsafe {
            let mut outputs = sys::avfilter_inout_alloc();
            let mut inputs = sys::avfilter_inout_alloc();
            let code = if outputs.is_null() || inputs.is_null() {
                Err(Fault::out_of_memory())
            } else {
                (*outputs).name = sys::av_strdup(c"in".as_ptr());
                (*outputs).filter_ctx = self.source;
                (*outputs).pad_idx = 0;
                (*outputs).next = ptr::null_mut();
                (*inputs).name = sys::av_strdup(c"out".as_ptr());
                (*inputs).filter_ctx = self.sink;
                (*inputs).pad_idx = 0;
                (*inputs).next = ptr::null_mut();
                let parsed = sys::avfilter_graph_parse_ptr(
                    self.graph,
                    chain.as_ptr(),
                    &raw mut inputs,
                    &raw mut outputs,
                    ptr::null_mut(),
                );
                Fault::check(parsed)
            };
            sys::avfilter_inout_free(&raw mut inputs);
            sys::avfilter_inout_free(&raw mut outputs);
            code?;
            Fault::check(sys::avfilter_graph_config(self.graph, ptr::null_mut()))?;
        }
        Ok(())
    }

    /// Gives a frame, or the end with `None`.
    #[allow(clippy::needless_pass_by_value, reason = "the graph takes over what the frame refers to")]
    pub(crate) fn send(&mut self, frame: Option<Frame>) -> Result<(), Fault> {
        let pointer = frame.as_ref().map_or(ptr::null_mut(), Frame::as_ptr);
        // SAFETY: source and frame are valid; without KEEP_REF the graph takes the frame's references and
        // leaves an empty shell, which is freed by `Frame`.
        Fault::check(unsafe { sys::av_buffersrc_add_frame_flags(self.source, pointer, 0) }).map(|_| ())
    }

    /// Takes the next frame, its times in microseconds.
    pub(crate) fn receive(&mut self) -> Result<Answer<Frame>, Fault> {
        let mut frame = Frame::new()?;
        // SAFETY: sink and frame are valid.
        match Fault::check(unsafe { sys::av_buffersink_get_frame(self.sink, frame.as_ptr()) }) {
            Ok(_) => {
                // SAFETY: the sink is configured.
                let base =
                    super::stream::TimeBase::of(unsafe { sys::av_buffersink_get_time_base(self.sink) });
                if let Some(ticks) = frame.pts() {
                    frame.set_pts(base.timestamp(ticks.micros()).micros());
                }
                frame.forget_picture_type();
                if self.tag_bt709 {
                    frame.tag_bt709();
                }
                Ok(Answer::Item(frame))
            }
            Err(fault) if fault.is_again() => Ok(Answer::FeedMe),
            Err(fault) if fault.is_end() => Ok(Answer::Finished),
            Err(fault) => Err(fault),
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: frees the graph with all its filters, once.
        unsafe { sys::avfilter_graph_free(&raw mut self.graph) };
    }
}

/// Since FFmpeg 7 the buffer source must be told colours up front; before, it takes them from the frames.
#[cfg(ffmpeg_7_0)]
fn color_arguments(shape: &PictureShape) -> String {
    format!(":colorspace={}:range={}", shape.space, shape.range)
}

#[cfg(not(ffmpeg_7_0))]
fn color_arguments(_shape: &PictureShape) -> String {
    String::new()
}

fn picture_chain(shape: &PictureShape, path: &PicturePath) -> String {
    let mut chain = String::new();
    let layout = shape.pixels();
    if path.deinterlace {
        chain.push_str("bwdif=mode=send_frame:parity=auto:deint=interlaced,");
    }
    if path.pixels != PixelTarget::Rgba && layout.is_some_and(|pixels| pixels.alpha) {
        // Transparent pixels over black are colour times alpha.
        chain.push_str("format=gbrap,premultiply=inplace=1,format=gbrp,");
    }
    let size = if path.orientation.swaps_sides() { path.inside.turned() } else { path.inside };
    let hdr = shape.dynamic_range() != DynamicRange::Standard && tone_mapping_exists();
    if hdr {
        scale(&mut chain, size, "", "");
        tone_map(&mut chain, shape, path.pixels);
        match path.pixels {
            PixelTarget::Video => {}
            PixelTarget::Jpeg => {
                chain.push_str("scale=in_color_matrix=bt709:out_color_matrix=bt601:out_range=pc,");
            }
            PixelTarget::Rgba => chain.push_str("scale=in_color_matrix=bt709,"),
        }
    } else {
        let (matrix, range) = match path.pixels {
            PixelTarget::Video => (":out_color_matrix=bt709", ":out_range=tv"),
            PixelTarget::Jpeg => (":out_color_matrix=bt601", ":out_range=pc"),
            PixelTarget::Rgba => ("", ""),
        };
        scale(&mut chain, size, &format!(":in_color_matrix={}{matrix}", source_matrix(shape)), range);
    }
    chain.push_str(match path.pixels {
        PixelTarget::Video => "format=yuv420p,",
        PixelTarget::Jpeg => "format=yuvj420p,",
        PixelTarget::Rgba => "format=rgba,",
    });
    chain.push_str(match path.orientation {
        Orientation::Upright => "",
        Orientation::Mirrored => "hflip,",
        Orientation::Turned180 => "hflip,vflip,",
        Orientation::Flipped => "vflip,",
        Orientation::Transposed => "transpose=cclock_flip,",
        Orientation::Turned90 => "transpose=clock,",
        Orientation::Transversed => "transpose=clock_flip,",
        Orientation::Turned270 => "transpose=cclock,",
    });
    if path.inside != path.target {
        // Writing to a String cannot fail.
        let _ = write!(chain, "pad={}:{}:-1:-1:black,", path.target.width, path.target.height);
    }
    chain.push_str("setsar=1");
    chain
}

fn scale(chain: &mut String, size: Dimensions, matrices: &str, range: &str) {
    // Writing to a String cannot fail.
    let _ = write!(chain, "scale={}:{}:flags=bicubic{matrices}{range},", size.width, size.height);
}

/// Whether high dynamic range can be mapped in this build.
pub(crate) fn tone_mapping_exists() -> bool {
    filter_exists("zscale") && filter_exists("tonemap")
}

/// To linear light with SDR white at 203 cd/m² (ITU-R BT.2408), to BT.709 primaries, highlights rolled off,
/// and back to BT.709 video.
fn tone_map(chain: &mut String, shape: &PictureShape, pixels: PixelTarget) {
    let transfer = match shape.dynamic_range() {
        DynamicRange::Hlg => "arib-std-b67",
        DynamicRange::Pq | DynamicRange::Standard => "smpte2084",
    };
    let range = if shape.pixels().is_some_and(|pixels| pixels.full_range) { "full" } else { "limited" };
    // zscale refuses odd sizes where chroma is halved; only video is even by construction.
    let (first, last) = match pixels {
        PixelTarget::Video => ("", "yuv420p"),
        PixelTarget::Jpeg | PixelTarget::Rgba => ("format=yuv444p10le,", "yuv444p"),
    };
    let _ = write!(
        chain,
        "{first}zscale=tin={transfer}:min=2020_ncl:pin=2020:rin={range}:t=linear:npl=203,format=gbrpf32le,\
         zscale=p=709,tonemap=tonemap=mobius:param=0.6:desat=0,zscale=t=709:m=709:r=limited:dither=ordered,\
         format={last},"
    );
}

/// The matrix that the source's YUV was made with, in swscale's words. Files that do not say are taken as
/// players take them: standard definition as BT.601, anything larger as BT.709.
fn source_matrix(shape: &PictureShape) -> &'static str {
    let is = |space: sys::AVColorSpace| shape.space == space as i32;
    if is(sys::AVColorSpace::AVCOL_SPC_BT709) {
        "bt709"
    } else if is(sys::AVColorSpace::AVCOL_SPC_BT470BG) || is(sys::AVColorSpace::AVCOL_SPC_SMPTE170M) {
        "bt601"
    } else if is(sys::AVColorSpace::AVCOL_SPC_SMPTE240M) {
        "smpte240m"
    } else if is(sys::AVColorSpace::AVCOL_SPC_FCC) {
        "fcc"
    } else if is(sys::AVColorSpace::AVCOL_SPC_BT2020_NCL) || is(sys::AVColorSpace::AVCOL_SPC_BT2020_CL) {
        "bt2020"
    } else if shape.dimensions.long_side() >= 1280 || shape.dimensions.short_side() >= 720 {
        "bt709"
    } else {
        "bt601"
    }
}
