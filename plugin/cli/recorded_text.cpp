#include "plugin/cli/recorded_text.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kSecond_ns = 1'000'000'000;

}  // namespace

std::string time_text(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / kSecond_ns);
  std::tm day{};
  if (::gmtime_r(&seconds, &day) == nullptr) return {};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", day.tm_year + 1900,
                     day.tm_mon + 1, day.tm_mday, day.tm_hour, day.tm_min, day.tm_sec,
                     realtime_ns % kSecond_ns / 1000);
}

std::vector<std::string> recorded_lines(const BundleAbout& about) {
  std::vector<std::string> lines;
  if (!about.cause.empty()) {
    std::string cause = about.cause;
    if (about.thread.tid != 0)
      cause += fmt::format(", thread {}.{}", about.thread.pid, about.thread.tid);
    lines.push_back("cause         " + cause);
  }
  if (!about.command.empty()) lines.push_back("command       " + about.command);
  if (!about.clocks.empty()) {
    lines.push_back("began         " + time_text(about.clocks.front().realtime_ns));
    if (about.clocks.size() > 1)
      lines.push_back("ended         " + time_text(about.clocks.back().realtime_ns));
  }
  if (!about.core.empty()) lines.push_back("core file     " + about.core);
  return lines;
}

OrderedJson recorded_json(const BundleAbout& about) {
  OrderedJson json = OrderedJson::object();
  if (!about.cause.empty()) json["cause"] = about.cause;
  if (about.signal != 0) json["signal"] = about.signal;
  if (about.thread.tid != 0) {
    json["pid"] = about.thread.pid;
    json["tid"] = about.thread.tid;
  }
  if (!about.command.empty()) json["command"] = about.command;
  if (!about.clocks.empty()) json["began"] = time_text(about.clocks.front().realtime_ns);
  if (about.clocks.size() > 1) json["ended"] = time_text(about.clocks.back().realtime_ns);
  if (!about.core.empty()) json["core"] = about.core;
  return json;
}

std::vector<std::string> register_lines(const BundleThreadState& state) {
  constexpr std::size_t kPerLine = 4;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < state.registers.size(); ++i) {
    if (i % kPerLine == 0) lines.emplace_back();
    const auto& [name, value] = state.registers[i];
    lines.back() += fmt::format("{}{:<7} {:#018x}", i % kPerLine == 0 ? "" : "  ", name, value);
  }
  return lines;
}

OrderedJson registers_json(const BundleThreadState& state) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, value] : state.registers) json[name] = fmt::format("{:#x}", value);
  return json;
}

}  // namespace tailtrace
