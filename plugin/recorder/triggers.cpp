#include "plugin/recorder/triggers.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

std::optional<unsigned> parse_decimal(std::string_view text) {
  unsigned number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

Result<int> parse_signal(std::string_view text) {
  std::string_view name = text.starts_with("SIG") ? text.substr(3) : text;
  int found = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == known) found = signal;
  }
  if (auto number = parse_decimal(text); number && *number < NSIG)
    found = static_cast<int>(*number);
  if (found == SIGKILL || found == SIGSTOP)
    return fail(ErrorCode::kUsage, "cannot wait for " + signal_text(found),
                "the program does not get it, and nobody sees it come");
  if (found != 0) return found;
  return fail(ErrorCode::kUsage, fmt::format("there is no signal `{}`", text), "",
              "a name such as SIGUSR1");
}

Result<WatchedPlace> parse_watched(std::string_view text, bool reads) {
  auto misused = [&](std::string why) {
    return fail(ErrorCode::kUsage, fmt::format("cannot watch `{}`", text), std::move(why),
                "0xADDRESS or 0xADDRESS:BYTES");
  };
  std::string_view address = text.substr(0, text.find(':'));
  if (!address.starts_with("0x")) return misused("it is no address");
  auto value = parse_hex(address.substr(2));
  if (!value) return misused("it is no address");
  WatchedPlace place{{*value}, 8, reads};
  if (address.size() == text.size()) {
    while (*value % place.size_bytes != 0) place.size_bytes /= 2;
    return place;
  }
  auto size = parse_decimal(text.substr(address.size() + 1));
  constexpr std::array<unsigned, 4> kSizes{1, 2, 4, 8};
  if (!size || std::ranges::find(kSizes, *size) == kSizes.end())
    return misused("1, 2, 4 or 8 bytes can be watched");
  if (*value % *size != 0) return misused("its address is no multiple of its size");
  place.size_bytes = *size;
  return place;
}

bool is_crash_signal(int signal) {
  constexpr std::array kSignals{SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                SIGFPE,  SIGSEGV, SIGSYS,  SIGXCPU, SIGXFSZ};
  return std::ranges::find(kSignals, signal) != kSignals.end();
}

}  // namespace tailtrace
