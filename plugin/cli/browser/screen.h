// Screen: the whole terminal, as long as it lives. It puts the terminal back as it was whenever it
// ends, by a signal too, and when this program crashes.
//
// Threading: the main thread. There is one at a time; while it lives, the signals that end a
// program arrive in next_key() alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/cli/browser/page.h"

namespace tailtrace {

// A key that a person pressed, or what else there is to do.
struct Key {
  enum class Kind : std::uint8_t {
    kText,  // `text`
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kInterrupt,  // Ctrl-C
    kResize,
    kSignal,  // `signal` ends this program
    kOther
  };
  Kind kind = Kind::kOther;
  std::string text;  // a character in UTF-8
  int signal = 0;
};

class Screen {
 public:
  // Errors: kUsage when this is no terminal, or one whose cursor cannot be moved.
  static Result<std::unique_ptr<Screen>> open(bool color);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  PageSize size() const;
  // Shows those pieces and nothing else; the cursor behind the last one's text if `typing`.
  void show(const std::vector<PagePiece>& page, bool typing = false);
  // Waits for it.
  Key next_key();
  // Whether Ctrl-C was pressed since, or a signal came that ends this program; does not wait.
  bool interrupted();

 private:
  Screen() = default;
};

}  // namespace tailtrace
