// Lists of signals, as QPassSignals and QProgramSignals have them: numbers of the protocol's in
// hexadecimal, between semicolons.
//
// Threading: values, no shared state.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace tailtrace::rsp {

using SignalSet = std::bitset<256>;

// What is no number of a signal is left out.
SignalSet parse_signals(std::string_view list);

}  // namespace tailtrace::rsp
