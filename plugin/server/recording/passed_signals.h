// PassedSignals: the signals that the server below delivers without a word, as the debugger asked
// with `QPassSignals`. A thread that runs must not get one that way: it would run on in the
// handler, and nobody would know.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "plugin/server/below/below.h"

namespace tailtrace {

class PassedSignals {
 public:
  explicit PassedSignals(Below& below) : below_(below) {}

  // The debugger's request, if it is that.
  void note_request(std::string_view packet);

  // Whether the server below is to tell of these, too, until it is told otherwise. Errors: kGone.
  Result<void> keep(bool on);

 private:
  Below& below_;
  std::string wanted_;  // as the debugger said
  bool kept_ = false;
};

}  // namespace tailtrace
