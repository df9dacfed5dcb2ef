#include "plugin/cli/browser/browse.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "decoder/base/text.h"
#include "plugin/cli/browser/browser.h"
#include "plugin/cli/browser/screen.h"

namespace tailtrace {
namespace {

using Kind = Key::Kind;

constexpr char kHint[] =
    "up, down: step  left, right: line  u: caller  g: go to  /: search  ?: keys";

struct Binding {
  const char* keys;
  const char* what;
};
constexpr Binding kBindings[] = {
    {"up, k / down, j", "an instruction back / forward"},
    {"left, h / right, l", "a source line back / forward"},
    {"u", "out to the call of this function"},
    {"page up, b / page down, space", "a page back / forward"},
    {"home, < / end, >", "the oldest / the newest item"},
    {"g", "go to a position: -12 from the newest, 12 from the oldest"},
    {"/, n", "search a LOCATION back from here; the next one back"},
    {"\\, N", "search it forward; the next one forward"},
    {"t, T", "the next thread; the one before"},
    {"a", "addresses on and off"},
    {"Ctrl-C", "give up a search or a count"},
    {"Ctrl-L", "draw anew"},
    {"q", "quit"},
};

// What is being typed in the bottom line.
struct Prompt {
  std::string label;
  std::string text;
  std::function<void(const std::string&)> done;
};

class Session {
 public:
  Session(std::vector<ThreadSource> threads, std::size_t first)
      : threads_(std::move(threads)), thread_(first) {}

  // Errors: as open_recorded.
  Result<void> open_thread();
  // Returns the signal that is to end this program; 0: the user left.
  int run(Screen& screen);

 private:
  void show(const std::string& bottom, bool typing = false);
  void show_help();
  void take(const Key& key);
  void take_text(const std::string& text);
  void take_into_prompt(const Key& key);
  void ask(std::string label, std::function<void(const std::string&)> done);
  void change_thread(std::size_t by);
  std::string title() const;
  int page() const;

  std::vector<ThreadSource> threads_;
  std::size_t thread_;
  HistoryView view_;
  std::string problem_;  // what cannot be read of the thread
  std::unique_ptr<Browser> browser_;
  Screen* screen_ = nullptr;
  Prompt prompt_;
  bool is_asking_ = false;
  bool help_ = false;
  bool left_ = false;
};

Result<void> Session::open_thread() {
  ReadingSettings settings;
  settings.numbers = HistorySettings::Numbers::kFromNewest;
  problem_.clear();
  // Names are read later: what is wrong with them is told then.
  auto say = [this](const std::string& text) {
    if (problem_.empty()) problem_ = text.substr(0, text.find('\n'));
  };
  Result<HistoryView> view = open_view_of(threads_[thread_], ~0ull, say, settings);
  if (!view) return fail(std::move(view.error()));
  browser_.reset();
  view_ = std::move(*view);
  auto wait = [this](const std::string& what) {
    if (screen_ == nullptr) return true;
    show(what + "  (Ctrl-C gives up)");
    return !screen_->interrupted();
  };
  browser_ = std::make_unique<Browser>(*view_.history, *view_.symbols, wait, view_.stack);
  return {};
}

std::string Session::title() const {
  std::string text =
      fmt::format(" [{}]  thread {}", browser_->position(), thread_text(view_.thread));
  if (threads_.size() > 1) text += fmt::format(" ({} of {})", thread_ + 1, threads_.size());
  return printable(text + "  " + view_.thread.path);
}

int Session::page() const { return std::max(1, plan_page(screen_->size()).history.rows - 1); }

void Session::show(const std::string& bottom, bool typing) {
  const PagePlan plan = plan_page(screen_->size());
  PageContent content{title(), browser_->history_lines(plan.history.rows),
                      browser_->source_lines(plan.source.rows),
                      browser_->path_lines(plan.path.rows), printable(bottom)};
  screen_->show(lay_out(plan, content), typing);
}

void Session::show_help() {
  const PageSize size = screen_->size();
  std::vector<PagePiece> page = {{0, 0, size.columns, {" tailtrace: keys", PageStyle::kBar}}};
  for (const Binding& binding : kBindings) {
    const std::string line = fmt::format("  {:<30} {}", binding.keys, binding.what);
    page.push_back({static_cast<int>(page.size()) + 1, 0, size.columns, {line, PageStyle::kPlain}});
  }
  page.push_back({size.rows - 1, 0, size.columns, {"any key goes on", PageStyle::kBar}});
  std::erase_if(page, [&](const PagePiece& piece) { return piece.row >= size.rows; });
  screen_->show(page);
}

int Session::run(Screen& screen) {
  screen_ = &screen;
  while (!left_) {
    if (help_)
      show_help();
    else if (is_asking_)
      show(prompt_.label + prompt_.text, true);
    else if (!browser_->message().empty())
      show(browser_->message());
    else
      show(problem_.empty() ? kHint : problem_);
    const Key key = screen.next_key();
    if (key.kind == Kind::kSignal) return key.signal;
    if (key.kind == Kind::kResize) continue;
    if (help_)
      help_ = false;
    else if (is_asking_)
      take_into_prompt(key);
    else
      take(key);
  }
  return 0;
}

void Session::ask(std::string label, std::function<void(const std::string&)> done) {
  prompt_ = {std::move(label), "", std::move(done)};
  is_asking_ = true;
}

void Session::take_into_prompt(const Key& key) {
  std::string& text = prompt_.text;
  switch (key.kind) {
    case Kind::kText:
      if (text.size() < kMaxLocation_bytes) text += key.text;
      return;
    case Kind::kBackspace:
      is_asking_ = !text.empty();
      // A character of UTF-8 is a byte and those that go on from it.
      while (!text.empty() && (text.back() & 0xc0) == 0x80) text.pop_back();
      if (!text.empty()) text.pop_back();
      return;
    case Kind::kEscape:
    case Kind::kInterrupt:
      is_asking_ = false;
      return;
    case Kind::kEnter:
      is_asking_ = false;
      return prompt_.done(text);
    default:
      return;
  }
}

void Session::change_thread(std::size_t by) {
  const std::size_t before = thread_;
  thread_ = (thread_ + by) % threads_.size();
  if (thread_ == before) return;
  if (Result<void> opened = open_thread(); !opened) {
    thread_ = before;
    problem_ = opened.error().to_line();
  }
}

void Session::take(const Key& key) {
  problem_.clear();
  switch (key.kind) {
    case Kind::kUp:
      return browser_->step(-1);
    case Kind::kDown:
      return browser_->step(1);
    case Kind::kLeft:
      return browser_->step_lines(true);
    case Kind::kRight:
      return browser_->step_lines(false);
    case Kind::kPageUp:
      return browser_->step(-page());
    case Kind::kPageDown:
      return browser_->step(page());
    case Kind::kHome:
      return browser_->to_oldest();
    case Kind::kEnd:
      return browser_->to_newest();
    case Kind::kInterrupt:
      problem_ = "q quits";
      return;
    case Kind::kText:
      return take_text(key.text);
    default:
      return;
  }
}

void Session::take_text(const std::string& text) {
  switch (text.size() == 1 ? text.front() : '\0') {
    case 'k':
      return browser_->step(-1);
    case 'j':
      return browser_->step(1);
    case 'h':
      return browser_->step_lines(true);
    case 'l':
      return browser_->step_lines(false);
    case 'b':
      return browser_->step(-page());
    case ' ':
      return browser_->step(page());
    case '<':
      return browser_->to_oldest();
    case '>':
      return browser_->to_newest();
    case 'u':
      return browser_->step_out();
    case 'g':
      return ask("go to: ", [this](const std::string& to) { browser_->go_to(to); });
    case '/':
      return ask("back to: ", [this](const std::string& to) { browser_->search(to, true); });
    case '\\':
      return ask("forward to: ", [this](const std::string& to) { browser_->search(to, false); });
    case 'n':
      return browser_->search("", true);
    case 'N':
      return browser_->search("", false);
    case 't':
      return change_thread(1);
    case 'T':
      return change_thread(threads_.size() - 1);
    case 'a':
      return browser_->show_addresses(!browser_->shows_addresses());
    case '?':
      help_ = true;
      return;
    case 'q':
      left_ = true;
      return;
    default:
      return;
  }
}

std::size_t index_of(const std::vector<ThreadSource>& threads, const ThreadSource& one) {
  for (std::size_t i = threads.size(); i-- != 0;)
    if (threads[i].thread == one.thread && threads[i].path == one.path) return i;
  return 0;
}

}  // namespace

bool can_browse(const HistoryOptions& options, const Invocation& invocation) {
  return !terminal_is_dumb() && options.output->json == JsonForm::kNone && !options.strict &&
         invocation.out == stdout && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

Result<int> browse(const HistoryOptions& options) {
  Result<std::vector<ThreadSource>> threads = recorded_threads(options.path);
  if (!threads) return fail(std::move(threads.error()));
  Result<ThreadSource> first = pick_thread(*threads, options.thread);
  if (!first) return fail(std::move(first.error()));
  const std::size_t index = index_of(*threads, *first);
  Session session(std::move(*threads), index);
  if (Result<void> opened = session.open_thread(); !opened) return fail(std::move(opened.error()));
  int signal = 0;
  {
    Result<std::unique_ptr<Screen>> screen = Screen::open(options.output->use_color(stdout));
    if (!screen) return fail(std::move(screen.error()));
    signal = session.run(**screen);
  }
  if (signal != 0) ::raise(signal);
  return kExitDone;
}

}  // namespace tailtrace
