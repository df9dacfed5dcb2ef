// HTML page: calls as a timeline to be zoomed and searched, in one file that needs nothing else:
// no network, no other program than a browser. HTML.md has what is in it.
//
// Names of functions and files are data there, never markup or program: they come from anywhere.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoder/history/calls/calls.h"
#include "decoder/history/loops.h"

namespace tailtrace {

// Of a thread; what is beyond is the oldest, and the page says how much.
constexpr std::size_t kMaxPageCalls = 200'000;

// Items of a thread that a page is about when nobody says: the newest.
constexpr std::uint64_t kPageItems = 1'000'000;

class HtmlPage {
 public:
  using Sink = std::function<bool(std::string_view)>;

  // Takes lines without their line feeds; false: enough.
  explicit HtmlPage(Sink sink) : sink_(std::move(sink)) {}

  // A page: begin(), threads one after the other, end(). `source` is where the recording lies.
  void begin(const std::string& source);
  // Calls and loops of the same stretch of the history.
  void add(const History& history, const CallHistory& calls, const std::vector<Loop>& loops,
           Symbolizer& symbols);
  void end();

 private:
  void put(std::string_view line);
  std::size_t name(const std::string& text);

  Sink sink_;
  bool more_ = true;
  bool any_ = false;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace tailtrace
