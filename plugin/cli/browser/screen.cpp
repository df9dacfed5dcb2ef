#include "plugin/cli/browser/screen.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <clocale>
#include <csignal>
#include <cwchar>

#include "plugin/cli/browser/terminal_signals.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <sys/ioctl.h>
#include <term.h>
#undef columns  // words of everybody's
#undef lines

namespace tailtrace {
namespace {

enum Pair : short { kRed = 1, kBlue = 2 };

struct Terminal {
  std::unique_ptr<TerminalSignals> signals;
  SCREEN* screen = nullptr;
  bool color = false;
};
Terminal g_terminal;

// Of the terminal at hand, without the pauses that old ones needed ("$<5>"); empty when it does not
// have that.
std::string ability(const char* name) {
  const char* text = tigetstr(name);
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return {};
  std::string bytes = text;
  for (std::size_t at; (at = bytes.find("$<")) != std::string::npos;)
    bytes.erase(at, bytes.find('>', at) - at + 1);
  return bytes;
}

attr_t attributes(PageStyle style) {
  const bool color = g_terminal.color;
  switch (style) {
    case PageStyle::kPlain:
      return A_NORMAL;
    case PageStyle::kHeader:
      return A_BOLD;
    case PageStyle::kCurrent:
    case PageStyle::kBar:
      return A_REVERSE;
    case PageStyle::kGap:
      return color ? A_BOLD | static_cast<attr_t>(COLOR_PAIR(kRed)) : A_BOLD;
    case PageStyle::kFaint:
      return color ? static_cast<attr_t>(COLOR_PAIR(kBlue)) : A_DIM;
  }
  return A_NORMAL;
}

// As characters of the user's locale that take so many columns at most; '?' for others.
std::wstring cut(std::string_view text, int columns) {
  std::wstring shown;
  std::mbstate_t state{};
  while (!text.empty() && columns > 0) {
    wchar_t c = L'?';
    std::size_t read = std::mbrtowc(&c, text.data(), text.size(), &state);
    const bool is_known = read != 0 && read <= text.size();
    if (!is_known) state = {};
    int width = is_known ? ::wcwidth(c) : -1;
    if (width < 0) {
      c = L'?';
      width = 1;
    }
    if (width > columns) break;
    shown.push_back(c);
    columns -= width;
    text.remove_prefix(is_known ? read : 1);
  }
  shown.append(static_cast<std::size_t>(columns), L' ');
  return shown;
}

std::string utf8(wint_t c) {
  std::mbstate_t state{};
  char text[MB_LEN_MAX];
  std::size_t size = std::wcrtomb(text, static_cast<wchar_t>(c), &state);
  return size == static_cast<std::size_t>(-1) ? std::string() : std::string(text, size);
}

using Kind = Key::Kind;

constexpr struct {
  wint_t code;
  Kind kind;
} kFunctionKeys[] = {
    {KEY_UP, Kind::kUp},        {KEY_DOWN, Kind::kDown},
    {KEY_LEFT, Kind::kLeft},    {KEY_RIGHT, Kind::kRight},
    {KEY_PPAGE, Kind::kPageUp}, {KEY_NPAGE, Kind::kPageDown},
    {KEY_HOME, Kind::kHome},    {KEY_END, Kind::kEnd},
    {KEY_ENTER, Kind::kEnter},  {KEY_BACKSPACE, Kind::kBackspace},
};

Key function_key(wint_t code) {
  for (const auto& key : kFunctionKeys)
    if (key.code == code) return {key.kind, "", 0};
  return {};
}

Key character_key(wint_t key) {
  constexpr wint_t kEscape = 27, kDelete = 127;
  if (key == L'\n' || key == L'\r') return {Kind::kEnter, "", 0};
  if (key == L'\b' || key == kDelete) return {Kind::kBackspace, "", 0};
  if (key == kEscape) return {Kind::kEscape, "", 0};
  if (key < L' ') return {};
  return {Kind::kText, utf8(key), 0};
}

// What a terminal keeps of its contents when its size changes is its own choice: all is drawn anew.
void adopt_size() {
  winsize now{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) == 0 && now.ws_row != 0 && now.ws_col != 0)
    ::resizeterm(now.ws_row, now.ws_col);
  ::clearok(::curscr, TRUE);
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open(bool color) {
  auto refuse = [](std::string why) {
    return fail(ErrorCode::kUsage, "cannot browse at this terminal", std::move(why),
                "tailtrace info, history and calls print");
  };
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    return refuse("this is no terminal");
  int error = 0;
  const bool is_known = ::setupterm(nullptr, STDOUT_FILENO, &error) == OK;
  const bool moves = is_known && !ability("cup").empty();
  const std::string restoring =
      moves ? ability("sgr0") + ability("cnorm") + ability("rmkx") + ability("rmcup") : "";
  if (is_known) ::del_curterm(::cur_term);  // newterm() has one of its own
  if (!moves) return refuse("its cursor cannot be moved, or its kind (TERM) is not known");
  std::setlocale(LC_CTYPE, "");
  g_terminal.signals = std::make_unique<TerminalSignals>(restoring);
  g_terminal.screen = ::newterm(nullptr, stdout, stdin);
  if (g_terminal.screen == nullptr) {
    g_terminal.signals.reset();
    return refuse("it is not known how");
  }
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(::stdscr, TRUE);
  ::nodelay(::stdscr, TRUE);
  ::set_escdelay(25);
  g_terminal.color = color && ::has_colors() && ::start_color() == OK;
  if (g_terminal.color) {
    const short background = ::use_default_colors() == OK ? -1 : COLOR_BLACK;
    ::init_pair(kRed, COLOR_RED, background);
    ::init_pair(kBlue, COLOR_BLUE, background);
  }
  return std::unique_ptr<Screen>(new Screen);
}

Screen::~Screen() {
  ::endwin();
  ::delscreen(g_terminal.screen);
  g_terminal.signals.reset();
}

PageSize Screen::size() const { return {getmaxy(::stdscr), getmaxx(::stdscr)}; }

void Screen::show(const std::vector<PagePiece>& page, bool typing) {
  ::werase(::stdscr);
  for (const PagePiece& piece : page) {
    const std::wstring text = cut(piece.line.text, piece.columns);
    ::wattr_set(::stdscr, attributes(piece.line.style), 0, nullptr);
    ::mvwaddnwstr(::stdscr, piece.row, piece.column, text.c_str(), static_cast<int>(text.size()));
  }
  ::wattr_set(::stdscr, A_NORMAL, 0, nullptr);
  ::curs_set(typing ? 1 : 0);
  if (typing && !page.empty()) {
    const PagePiece& last = page.back();
    const auto end = static_cast<int>(std::min<std::size_t>(
        last.line.text.size(), static_cast<std::size_t>(std::max(0, last.columns - 1))));
    ::wmove(::stdscr, last.row, last.column + end);
  }
  ::wrefresh(::stdscr);
}

Key Screen::next_key() {
  // Input that is there and cannot be read: nobody is at the terminal any more. A character may
  // take a few attempts.
  constexpr int kMaxAttempts = 8;
  for (int attempts = 0; attempts < kMaxAttempts;) {
    TerminalSignals& signals = *g_terminal.signals;
    if (signals.take_interrupt()) return {Kind::kInterrupt, "", 0};
    if (signals.ending() != 0) return {Kind::kSignal, "", signals.ending()};
    if (signals.take_resize()) {
      adopt_size();
      return {Kind::kResize, "", 0};
    }
    wint_t key = 0;
    const int got = ::wget_wch(::stdscr, &key);
    if (got == KEY_CODE_YES) return function_key(key);
    if (got == OK) return character_key(key);
    const TerminalSignals::Came came = signals.wait();
    if (came == TerminalSignals::Came::kHangup) break;
    attempts = came == TerminalSignals::Came::kInput ? attempts + 1 : 0;
  }
  return {Kind::kSignal, "", SIGHUP};
}

bool Screen::interrupted() {
  return g_terminal.signals->take_interrupt() || g_terminal.signals->ending() != 0;
}

}  // namespace tailtrace
