//! Connections that can be cut from our side at any moment, without a word.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Where connections come in.
#[derive(Debug)]
pub(super) struct Doors {
    listener: TcpListener,
    cut: CancellationToken,
}

/// The way to cut one connection.
#[derive(Clone, Debug)]
pub(super) struct Door(CancellationToken);

/// A connection that ends when it is cut.
pub(super) struct Line {
    stream: TcpStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    is_cut: bool,
}

impl Doors {
    /// All of its connections end when `cut` is cancelled.
    pub(super) fn new(listener: TcpListener, cut: CancellationToken) -> Self {
        Self { listener, cut }
    }
}

impl Door {
    /// Closes the connection.
    pub(super) fn cut(&self) {
        self.0.cancel();
    }
}

impl Listener for Doors {
    type Io = Line;
    type Addr = Door;

    async fn accept(&mut self) -> (Line, Door) {
        let (stream, _) = Listener::accept(&mut self.listener).await;
        // Small frames go out at once. A connection that is gone already shows that itself.
        drop(stream.set_nodelay(true));
        let cut = self.cut.child_token();
        (Line { stream, cut: Box::pin(cut.clone().cancelled_owned()), is_cut: false }, Door(cut))
    }

    fn local_addr(&self) -> io::Result<Door> {
        Ok(Door(self.cut.clone()))
    }
}

impl Connected<IncomingStream<'_, Doors>> for Door {
    fn connect_info(stream: IncomingStream<'_, Doors>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Line {
    /// Whether the connection still stands; the one who asks is woken when it is cut.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_cut = self.is_cut || self.cut.as_mut().poll(context).is_ready();
        if self.is_cut { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
