#include "plugin/server/lldb/lldb_requests.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

namespace tailtrace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kType = "intel-pt";
constexpr std::uint64_t kMinTraceSize_bytes = 4096;
constexpr std::uint64_t kMaxPsbPeriod = 15;
constexpr std::size_t kMaxThreads = 1 << 16;

tl::unexpected<Error> malformed(std::string why) {
  return fail(ErrorCode::kBadInput, "cannot understand the trace request", std::move(why));
}

Result<Json> parse_object(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return malformed("it holds no JSON object");
  auto type = json.find("type");
  if (type == json.end() || !type->is_string()) return malformed("it has no `type`");
  if (*type != kType)
    return fail(ErrorCode::kUsage,
                fmt::format("cannot trace by `{}`", type->get<std::string>().substr(0, 40)),
                "this server's traces are of type `intel-pt`");
  return json;
}

// Absent and `null` are the same.
const Json* find(const Json& json, const char* name) {
  auto it = json.find(name);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

Result<std::optional<std::uint64_t>> number(const Json& json, const char* name) {
  const Json* value = find(json, name);
  if (value == nullptr) return std::optional<std::uint64_t>();
  if (!value->is_number_unsigned()) return malformed(fmt::format("`{}` is no number", name));
  return std::optional(value->get<std::uint64_t>());
}

Result<bool> truth(const Json& json, const char* name) {
  const Json* value = find(json, name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return malformed(fmt::format("`{}` is no boolean", name));
  return value->get<bool>();
}

std::optional<std::int32_t> as_thread(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  auto tid = value.get<std::uint64_t>();
  if (tid == 0 || tid > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(tid);
}

Result<LldbThreads> threads(const Json& json) {
  const Json* list = find(json, "tids");
  if (list == nullptr) return LldbThreads();
  if (!list->is_array() || list->size() > kMaxThreads) return malformed("`tids` is no list");
  std::vector<std::int32_t> tids;
  for (const Json& item : *list) {
    auto tid = as_thread(item);
    if (!tid) return malformed("`tids` holds what is no thread id");
    tids.push_back(*tid);
  }
  return LldbThreads(std::move(tids));
}

std::string psb_periods() {
  std::string list;
  for (std::uint64_t n = 0; n <= kMaxPsbPeriod; ++n)
    list += fmt::format("{}{}", n == 0 ? "" : ", ", n);
  return list;
}

Result<void> check(const LldbTraceStart& start) {
  if (start.trace_size_bytes < kMinTraceSize_bytes || !std::has_single_bit(start.trace_size_bytes))
    return fail(ErrorCode::kUsage,
                fmt::format("The intel pt trace size must be a power of 2 greater than or equal to "
                            "4096 (2^12) bytes. It was {}.",
                            start.trace_size_bytes));
  if (start.psb_period.value_or(0) > kMaxPsbPeriod)
    return fail(ErrorCode::kUsage,
                fmt::format("Invalid psb_period. Valid values are: {}", psb_periods()));
  return {};
}

}  // namespace

Result<LldbTraceStart> parse_lldb_trace_start(std::string_view text) {
  auto json = parse_object(text);
  if (!json) return fail(std::move(json.error()));
  auto tids = threads(*json);
  auto size = number(*json, "iptTraceSize"), period = number(*json, "psbPeriod"),
       limit = number(*json, "processBufferSizeLimit");
  auto tsc = truth(*json, "enableTsc"), per_cpu = truth(*json, "perCpuTracing");
  if (!tids) return fail(std::move(tids.error()));
  for (auto* value : {&size, &period, &limit})
    if (!*value) return fail(std::move(value->error()));
  for (auto* value : {&tsc, &per_cpu})
    if (!*value) return fail(std::move(value->error()));
  if (!*size) return malformed("`iptTraceSize` is missing");
  Result<LldbTraceStart> start =
      LldbTraceStart{std::move(*tids), **size, *tsc, *period, *limit, *per_cpu};
  if (auto ok = check(*start); !ok) return fail(std::move(ok.error()));
  return start;
}

Result<LldbThreads> parse_lldb_trace_stop(std::string_view text) {
  auto json = parse_object(text);
  if (!json) return fail(std::move(json.error()));
  return threads(*json);
}

Result<void> parse_lldb_trace_state(std::string_view text) {
  auto json = parse_object(text);
  if (!json) return fail(std::move(json.error()));
  return {};
}

Result<LldbTraceData> parse_lldb_trace_data(std::string_view text) {
  auto json = parse_object(text);
  if (!json) return fail(std::move(json.error()));
  LldbTraceData data;
  const Json* kind = find(*json, "kind");
  if (kind == nullptr || !kind->is_string()) return malformed("`kind` is missing");
  data.kind = kind->get<std::string>();
  if (const Json* tid = find(*json, "tid")) {
    data.thread = as_thread(*tid);
    if (!data.thread) return malformed("`tid` is no thread id");
  }
  auto cpu = number(*json, "cpuId");
  if (!cpu) return fail(std::move(cpu.error()));
  data.cpu = *cpu;
  return data;
}

}  // namespace tailtrace
