// lcov: coverage as a tracefile that genhtml and editors read (geninfo(1), "FILES").
//
// Threading: a pure function.
#pragma once

#include <functional>
#include <string_view>

#include "decoder/history/queries/coverage.h"

namespace tailtrace {

// Calls `line` for every line of the tracefile, without its line feed, until it says false. Of the
// source files those are in it that `wanted` says true of.
void list_lcov(const Coverage& coverage, const std::function<bool(const std::string&)>& wanted,
               const std::function<bool(std::string_view)>& line);

}  // namespace tailtrace
