//! The page in headless Chromium, driven through chromedriver by a small WebDriver client: the filter works, the
//! console stays silent, nothing is requested but the page itself.

use crate::common;
use lowlat_settings::Verdict;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A hanging browser must not hang the tests.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// The page does what a click asks for soon after it, and a busy machine may take long for it.
const PATIENCE_MAX: Duration = Duration::from_secs(30);
/// Lines that chromedriver prints before it names its port.
const START_LINES_MAX: usize = 50;
/// Browsers that are tried before the test reports that none works here.
const BROWSERS_MAX: usize = 3;
/// WebDriver's errors for a browser that has ended; any other error is the fault of the page or of the test.
const DIED: [&str; 6] = [
    "session not created",
    "invalid session id",
    "no such window",
    "tab crashed",
    "disconnected",
    "chrome not reachable",
];

/// The browser ended or does not answer, which says nothing about the page.
#[derive(Debug)]
struct Died(String);

/// A chromedriver that ends with the test.
struct Driver {
    child: Child,
    /// Kept open, because chromedriver may still write to it.
    _output: BufReader<ChildStdout>,
    port: u16,
    session: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = request(self.port, "DELETE", &format!("/session/{}", self.session), None);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Driver {
    /// Starts a browser; none when chromedriver or a browser for it is not installed.
    fn start() -> Option<Self> {
        let browser = find(&["chromium", "chromium-browser", "google-chrome"])?;
        let mut child = Command::new(find(&["chromedriver"])?)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut output = BufReader::new(child.stdout.take()?);
        let port = output.by_ref().lines().take(START_LINES_MAX).map_while(Result::ok).find_map(|line| {
            line.rsplit_once("started successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok()
        });
        // Made before the port is checked, so that a driver that did not start is ended too.
        let mut driver = Self { child, _output: output, port: port.unwrap_or(0), session: String::new() };
        if port.is_none() {
            panic_any(Died("chromedriver named no port".to_owned()));
        }
        // Containers often have a small /dev/shm.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1400,1000",
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments, "binary": browser},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let answer = driver.raw("POST", "/session", Some(&capabilities));
        answer["sessionId"].as_str().expect("a session").clone_into(&mut driver.session);
        Some(driver)
    }

    fn raw(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = request(self.port, method, path, body)
            .unwrap_or_else(|error| panic_any(Died(format!("{method} {path}: {error}"))));
        let error = &answer["value"]["error"];
        let message = answer["value"]["message"].as_str().unwrap_or_default();
        let is_dead = |words: &&str| error == words || message.starts_with(words);
        if error.is_string() && DIED.iter().any(is_dead) {
            panic_any(Died(format!("{method} {path}: {message}")));
        }
        assert!(error.is_null(), "{method} {path}: {answer}");
        answer["value"].clone()
    }

    /// Waits until a script returns the wanted value.
    fn expect(&self, script: &str, wanted: &Value) {
        let start = Instant::now();
        loop {
            let found = self.script(script);
            if found == *wanted {
                return;
            }
            assert!(start.elapsed() < PATIENCE_MAX, "{script}: {found}, not {wanted}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.raw("POST", &format!("/session/{}{path}", self.session), Some(body))
    }

    fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Clicks as a user does: the element must be visible.
    fn click(&self, selector: &str) {
        // The bar at the top would cover an element at the edge of the window.
        self.expect(
            &format!(
                "const found = document.querySelector({}); \
                 found?.scrollIntoView({{block: 'center', behavior: 'instant'}}); return !!found",
                json!(selector)
            ),
            &json!(true),
        );
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        let id =
            found.as_object().and_then(|id| id.values().next()).and_then(Value::as_str).expect("an element");
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    fn expect_visible_rows(&self, count: u64) {
        let script =
            "return [...document.querySelectorAll('.finding')].filter(row => row.checkVisibility()).length";
        self.expect(script, &json!(count));
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", &json!({"type": kind})).as_array().expect("a log").clone()
    }
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|file| file.is_file())
}

/// One HTTP exchange with chromedriver on the loopback interface.
fn request(port: u16, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Every address that the browser asked for, from the network events of its performance log.
fn requests(driver: &Driver) -> Vec<String> {
    driver
        .log("performance")
        .iter()
        .filter_map(|entry| serde_json::from_str::<Value>(entry["message"].as_str()?).ok())
        .filter(|event| event["message"]["method"] == "Network.requestWillBeSent")
        .filter_map(|event| event["message"]["params"]["request"]["url"].as_str().map(str::to_owned))
        .collect()
}

fn write_page(name: &str, document: &lowlat_results::ResultDocument) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, lowlat_results_report::html(document)).expect("the page is written");
    let address = format!("file://{}", path.display());
    (path, address)
}

#[test]
fn the_page_works_in_a_browser() {
    for left in (0..BROWSERS_MAX).rev() {
        let Err(fault) = catch_unwind(AssertUnwindSafe(in_a_browser)) else { return };
        match fault.downcast::<Died>() {
            Ok(died) if left == 0 => {
                eprintln!(
                    "skipped: Chromium is installed and does not stay up here, so the page was not opened: {}",
                    died.0
                );
            }
            Ok(died) => eprintln!("the browser ended, another one is started: {}", died.0),
            Err(fault) => resume_unwind(fault),
        }
    }
}

fn in_a_browser() {
    let Some(driver) = Driver::start() else {
        eprintln!(
            "skipped: chromedriver or Chromium is not installed, so the page was not opened in a browser"
        );
        return;
    };
    filters_and_theme(&driver);
    links_open_folded_rows(&driver);
    heads_sort_their_columns(&driver);
    stays_alone_and_silent(&driver, &common::counted(), "counted.html");
    stays_alone_and_silent(&driver, &common::hostile(), "hostile.html");
    stays_alone_and_silent(&driver, &common::bare(), "bare.html");
    no_page_scrolls_sideways(&driver);
}

/// A wide table scrolls in its box, never the page with it.
fn no_page_scrolls_sideways(driver: &Driver) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sideways.html");
    for (name, page) in crate::page::pages() {
        std::fs::write(&path, page).expect("the page is written");
        driver.post("/url", &json!({"url": format!("file://{}", path.display())}));
        for width in [1280, 800] {
            driver.post("/window/rect", &json!({"width": width, "height": 900}));
            let scrolled = driver.script("window.scrollTo(5000, 0); return window.scrollX");
            assert_eq!(scrolled, json!(0), "{name} scrolls sideways at {width}");
        }
    }
}

fn filters_and_theme(driver: &Driver) {
    let document = common::epyc();
    let score = &document.audit.score;
    let count = |verdict| score.count(verdict) as u64;
    let (_, address) = write_page("epyc.html", &document);
    driver.post("/url", &json!({"url": address}));

    // Good and inapplicable rows are folded away at first.
    let all = document.audit.findings.len() as u64;
    driver.expect_visible_rows(all - count(Verdict::Good) - count(Verdict::NotApplicable));

    driver.click(".chip[data-verdict=wrong]");
    driver.expect_visible_rows(count(Verdict::Wrong));
    driver.expect("return document.querySelector('.chip[data-verdict=wrong]').ariaPressed", &json!("true"));
    driver.click(".chip[data-verdict=good]");
    driver.expect_visible_rows(count(Verdict::Wrong) + count(Verdict::Good));
    driver.click(".chip[data-verdict='']");

    driver.script(
        "const text = document.getElementById('filter-text'); text.value = 'NOHZ_full'; \
         text.dispatchEvent(new Event('input'))",
    );
    driver.expect_visible_rows(1);
    driver.expect(
        "return document.getElementById('filter-status').textContent",
        &json!(format!("1 of {all} settings")),
    );

    driver.click("[id^=f-]:not([hidden]) > summary");
    driver.expect(
        "const story = document.querySelector('.finding[open] .story'); return !!story && story.checkVisibility()",
        &json!(true),
    );

    let ground = "return getComputedStyle(document.body).backgroundColor";
    let before = driver.script(ground).as_str().expect("a colour").to_owned();
    driver.click("#theme");
    driver.expect(
        &format!("return getComputedStyle(document.body).backgroundColor !== '{before}'"),
        &json!(true),
    );
    assert_alone_and_silent(driver, &address);
}

/// A remedy's link opens the row of its setting, even when the filter hides it or it is folded away.
fn links_open_folded_rows(driver: &Driver) {
    let (_, address) = write_page("traced.html", &common::traced());
    driver.post("/url", &json!({"url": address}));
    driver.click(".chip[data-verdict=shadowed]");
    driver.click(".remedy a");
    let is_open = "const row = document.getElementById(location.hash.slice(1)); \
                   return !!row && row.open && row.checkVisibility() && row.textContent.includes('boot.nohz_full')";
    driver.expect(is_open, &json!(true));
    // A good row lies in a folded list.
    driver.script("location.hash = document.querySelector('.rest .finding').id");
    driver.expect("return document.getElementById(location.hash.slice(1)).checkVisibility()", &json!(true));
    assert_alone_and_silent(driver, &address);
}

/// The rows of each group are sorted by the figures with their units, and the remedy stays above its causes.
fn heads_sort_their_columns(driver: &Driver) {
    let (_, address) = write_page("sorted.html", &common::traced());
    driver.post("/url", &json!({"url": address}));
    let rows = "const rows = [...document.querySelectorAll('table.dense tbody tr')].map(row => row.cells[0].textContent)";
    let before = driver.script(&format!("{rows}; return rows")).as_array().expect("rows").len();
    driver.click("table.dense thead th:first-child .sort");
    driver.expect("return document.querySelector('table.dense thead th').ariaSort", &json!("descending"));
    driver.expect(
        &format!("{rows}; return rows.every((cpu, at) => at === 0 || +cpu <= +rows[at - 1]) && rows.length === {before}"),
        &json!(true),
    );
    driver.click("table.dense thead th:first-child .sort");
    driver.expect("return document.querySelector('table.dense thead th').ariaSort", &json!("ascending"));
    driver.click("table.causes thead th:nth-child(5) .sort");
    driver.expect(
        "return [...document.querySelectorAll('table.causes:has(.remedy-row) tbody')].every(body => body.rows[0].matches('.remedy-row'))",
        &json!(true),
    );
    assert_alone_and_silent(driver, &address);
}

fn stays_alone_and_silent(driver: &Driver, document: &lowlat_results::ResultDocument, name: &str) {
    let (_, address) = write_page(name, document);
    driver.post("/url", &json!({"url": address}));
    assert_alone_and_silent(driver, &address);
}

fn assert_alone_and_silent(driver: &Driver, address: &str) {
    let console = driver.log("browser");
    assert!(console.is_empty(), "{console:#?}");
    let requests = requests(driver);
    assert!(requests.iter().any(|url| url == address), "the log shows the page itself: {requests:?}");
    let others: Vec<&String> =
        requests.iter().filter(|url| *url != address && !url.starts_with("data:")).collect();
    assert!(others.is_empty(), "{others:?}");
}
