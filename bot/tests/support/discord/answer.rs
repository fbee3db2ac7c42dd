//! What a request is answered with.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde_json::{Value, json};

/// An answer to a request.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `Null` is an empty body.
    pub(super) body: Value,
    pub(super) headers: Vec<(&'static str, String)>,
    /// A body that is no JSON, as those make who stand before Discord's own servers.
    pub(super) page: Option<&'static str>,
}

/// A good answer, or one that refuses.
pub(super) type Outcome = Result<Answer, Answer>;

impl Answer {
    /// 200 with a body.
    pub(super) fn ok(body: Value) -> Self {
        Self { status: 200, body, headers: Vec::new(), page: None }
    }

    /// 204.
    pub(super) fn empty() -> Self {
        Self { status: 204, ..Self::ok(Value::Null) }
    }

    /// An error with Discord's own code.
    pub(super) fn refusal(status: u16, code: u32, message: &str) -> Self {
        Self { status, ..Self::ok(json!({"message": message, "code": code})) }
    }

    /// 50035: a form that is not as it should be, at one place.
    pub(super) fn form(path: &str, code: &str, message: &str) -> Self {
        let mut errors = json!({"_errors": [{"code": code, "message": message}]});
        for part in path.split('.').rev().filter(|part| !part.is_empty()) {
            errors = json!({ part: errors });
        }
        let body = json!({"message": "Invalid Form Body", "code": 50035, "errors": errors});
        Self { status: 400, ..Self::ok(body) }
    }

    /// An answer without Discord's form.
    pub(super) fn page(status: u16) -> Self {
        Self {
            status,
            page: Some("<html><body>the server is not well</body></html>"),
            ..Self::ok(Value::Null)
        }
    }

    pub(super) fn unknown_channel() -> Self {
        Self::refusal(404, 10003, "Unknown Channel")
    }

    pub(super) fn unknown_message() -> Self {
        Self::refusal(404, 10008, "Unknown Message")
    }

    pub(super) fn missing_access() -> Self {
        Self::refusal(403, 50001, "Missing Access")
    }

    pub(super) fn missing_permissions() -> Self {
        Self::refusal(403, 50013, "Missing Permissions")
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = match (self.page, self.body) {
            (Some(page), _) => {
                response = response.header(CONTENT_TYPE, "text/html");
                Body::from(page)
            }
            (None, Value::Null) => Body::empty(),
            (None, body) => {
                response = response.header(CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
        };
        response.body(body).unwrap()
    }
}
