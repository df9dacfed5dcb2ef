#include "decoder/bundle/lldb_bundle.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "decoder/base/file.h"
#include "decoder/base/own_file.h"

namespace tailtrace {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBundle_bytes = 64 << 20;

// Walks the document and remembers the first thing that is wrong with it.
class BundleReader {
 public:
  explicit BundleReader(std::string folder) : folder_(std::move(folder)) {}

  Result<LldbBundle> read(const json& root);

 private:
  // A member that must be there; null and an error when it is not.
  const json& member(const json& object, const char* name, const std::string& where);
  // A member that may be missing, or null, which is the same: null then.
  static const json* optional_member(const json& object, const char* name);
  const json* optional_array(const json& object, const char* name, const std::string& where);
  std::uint64_t number(const json& value, const std::string& where, std::uint64_t max);
  std::uint64_t number_or_text(const json& value, const std::string& where);
  std::string text(const json& value, const std::string& where);
  std::string file(const json& value, const std::string& where);
  void wrong(const std::string& where, const char* what);

  LldbProcess process(const json& value, const std::string& where);
  LldbThread thread(const json& value, std::int32_t pid, const std::string& where);
  LldbModule module(const json& value, const std::string& where);
  LldbCpu cpu(const json& value, const std::string& where);
  void header(const json& root, LldbBundle& bundle);
  void clock(const json& root, LldbBundle& bundle);
  void kernel(const json& root, LldbBundle& bundle);
  void check(const json& root, const LldbBundle& bundle);

  std::string folder_;
  std::set<std::int32_t> pids_;
  std::string error_;
};

const json kNull;

void BundleReader::wrong(const std::string& where, const char* what) {
  if (error_.empty()) error_ = where + " " + what;
}

const json& BundleReader::member(const json& object, const char* name, const std::string& where) {
  if (!object.is_object()) {
    wrong(where, "is no object");
    return kNull;
  }
  auto found = object.find(name);
  if (found == object.end()) {
    wrong(where + "." + name, "is missing");
    return kNull;
  }
  return *found;
}

const json* BundleReader::optional_member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json* BundleReader::optional_array(const json& object, const char* name,
                                         const std::string& where) {
  const json* found = optional_member(object, name);
  if (found == nullptr || found->is_array()) return found;
  wrong(where + "." + name, "is no array");
  return nullptr;
}

std::uint64_t BundleReader::number(const json& value, const std::string& where, std::uint64_t max) {
  if (!value.is_number_unsigned()) {
    wrong(where, "is no number");
    return 0;
  }
  if (value.get<std::uint64_t>() > max) wrong(where, "is too large");
  return value.get<std::uint64_t>();
}

// Those of 64 bits may be written as strings, decimal or with 0x: JSON numbers lose bits in many
// readers.
std::uint64_t BundleReader::number_or_text(const json& value, const std::string& where) {
  if (!value.is_string()) return number(value, where, ~0ull);
  const auto& digits = value.get_ref<const std::string&>();
  bool hex = digits.starts_with("0x");
  const char* first = digits.data() + (hex ? 2 : 0);
  const char* last = digits.data() + digits.size();
  std::uint64_t result = 0;
  auto [end, code] = std::from_chars(first, last, result, hex ? 16 : 10);
  if (code != std::errc() || end != last || first == last) wrong(where, "is no number");
  return result;
}

std::string BundleReader::text(const json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  wrong(where, "is no string");
  return {};
}

std::string BundleReader::file(const json& value, const std::string& where) {
  const std::string name = text(value, where);
  if (!stays_inside(name)) {
    wrong(where, "leads out of the bundle's folder");
    return {};
  }
  if (!check_own_file(folder_, name))
    wrong(where, "is a symbolic link, which may lead out of the bundle's folder");
  return (std::filesystem::path(folder_) / name).string();
}

LldbThread BundleReader::thread(const json& value, std::int32_t pid, const std::string& where) {
  LldbThread thread;
  constexpr auto kMaxTid = std::numeric_limits<std::int32_t>::max();
  thread.thread = {
      pid, static_cast<std::int32_t>(number(member(value, "tid", where), where + ".tid", kMaxTid))};
  if (const json* trace = optional_member(value, "iptTrace"))
    thread.trace_path = file(*trace, where + ".iptTrace");
  return thread;
}

LldbModule BundleReader::module(const json& value, const std::string& where) {
  LldbModule module;
  module.system_path = text(member(value, "systemPath", where), where + ".systemPath");
  module.load_address = {
      number_or_text(member(value, "loadAddress", where), where + ".loadAddress")};
  const json* path = optional_member(value, "file");
  module.path = path != nullptr ? file(*path, where + ".file") : module.system_path;
  if (const json* uuid = optional_member(value, "uuid")) module.uuid = text(*uuid, where + ".uuid");
  return module;
}

LldbProcess BundleReader::process(const json& value, const std::string& where) {
  LldbProcess process;
  constexpr auto kMaxPid = std::numeric_limits<std::int32_t>::max();
  process.pid =
      static_cast<std::int32_t>(number(member(value, "pid", where), where + ".pid", kMaxPid));
  if (value.is_object() && value.contains("triple") && value["triple"].is_string())
    process.triple = value["triple"].get<std::string>();
  if (!pids_.insert(process.pid).second) wrong(where + ".pid", "is that of another process");
  member(value, "threads", where);
  member(value, "modules", where);
  if (const json* threads = optional_array(value, "threads", where))
    for (std::size_t i = 0; i < threads->size(); ++i)
      process.threads.push_back(
          thread((*threads)[i], process.pid, where + ".threads[" + std::to_string(i) + "]"));
  if (const json* modules = optional_array(value, "modules", where))
    for (std::size_t i = 0; i < modules->size(); ++i)
      process.modules.push_back(
          module((*modules)[i], where + ".modules[" + std::to_string(i) + "]"));
  return process;
}

LldbCpu BundleReader::cpu(const json& value, const std::string& where) {
  LldbCpu cpu;
  cpu.id = static_cast<std::uint32_t>(number(member(value, "id", where), where + ".id", ~0u));
  cpu.trace_path = file(member(value, "iptTrace", where), where + ".iptTrace");
  cpu.context_switch_path =
      file(member(value, "contextSwitchTrace", where), where + ".contextSwitchTrace");
  return cpu;
}

void BundleReader::header(const json& root, LldbBundle& bundle) {
  if (text(member(root, "type", "the bundle"), "type") != "intel-pt")
    wrong("type", "is not intel-pt");
  const json& cpu = member(root, "cpuInfo", "the bundle");
  if (text(member(cpu, "vendor", "cpuInfo"), "cpuInfo.vendor") == "GenuineIntel") {
    bundle.cpu.family = static_cast<std::uint16_t>(
        number(member(cpu, "family", "cpuInfo"), "cpuInfo.family", 0xffff));
    bundle.cpu.model =
        static_cast<std::uint8_t>(number(member(cpu, "model", "cpuInfo"), "cpuInfo.model", 0xff));
    bundle.cpu.stepping = static_cast<std::uint8_t>(
        number(member(cpu, "stepping", "cpuInfo"), "cpuInfo.stepping", 0xff));
  }
}

void BundleReader::clock(const json& root, LldbBundle& bundle) {
  const json* clock = optional_member(root, "tscPerfZeroConversion");
  if (clock == nullptr) return;
  const std::string where = "tscPerfZeroConversion";
  auto part = [&](const char* name, std::uint64_t max) {
    return number(member(*clock, name, where), where + "." + name, max);
  };
  bundle.clock.emplace();
  bundle.clock->mult = static_cast<std::uint32_t>(part("timeMult", ~0u));
  bundle.clock->shift = static_cast<std::uint16_t>(part("timeShift", 63));
  bundle.clock->zero_ns = number_or_text(member(*clock, "timeZero", where), where + ".timeZero");
  if (bundle.clock->mult == 0) wrong(where + ".timeMult", "is 0");
}

void BundleReader::kernel(const json& root, LldbBundle& bundle) {
  const json* kernel = optional_member(root, "kernel");
  if (kernel == nullptr) return;
  bundle.kernel.emplace();
  bundle.kernel->path = file(member(*kernel, "file", "kernel"), "kernel.file");
  bundle.kernel->system_path = bundle.kernel->path;
  const json* address = optional_member(*kernel, "loadAddress");
  bundle.kernel->load_address = address == nullptr
                                    ? kLldbKernelAddress
                                    : Address{number_or_text(*address, "kernel.loadAddress")};
}

// What LLDB wants to be there together.
void BundleReader::check(const json& root, const LldbBundle& bundle) {
  if (!bundle.cpus.empty() && !bundle.clock)
    wrong("tscPerfZeroConversion", "is missing, and there are cpus");
  if (bundle.kernel && bundle.cpus.empty()) wrong("cpus", "is missing, and there is a kernel");
  if (bundle.kernel && !bundle.processes.empty())
    wrong("processes", "is not empty, and there is a kernel");
  if (!bundle.kernel && optional_member(root, "processes") == nullptr)
    wrong("the bundle.processes", "is missing, and there is no kernel");
}

Result<LldbBundle> BundleReader::read(const json& root) {
  LldbBundle bundle;
  header(root, bundle);
  if (const json* processes = optional_array(root, "processes", "the bundle"))
    for (std::size_t i = 0; i < processes->size(); ++i)
      bundle.processes.push_back(process((*processes)[i], "processes[" + std::to_string(i) + "]"));
  if (const json* cpus = optional_array(root, "cpus", "the bundle"))
    for (std::size_t i = 0; i < cpus->size(); ++i)
      bundle.cpus.push_back(cpu((*cpus)[i], "cpus[" + std::to_string(i) + "]"));
  clock(root, bundle);
  kernel(root, bundle);
  check(root, bundle);
  if (error_.empty()) return bundle;
  return fail(ErrorCode::kBadInput, "cannot use the trace bundle", error_);
}

}  // namespace

Result<LldbBundle> parse_lldb_bundle(std::string_view text, const std::string& folder) {
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded())
    return fail(ErrorCode::kBadInput, "cannot use the trace bundle", "it is no JSON document");
  return BundleReader(folder).read(root);
}

Result<LldbBundle> read_lldb_bundle(const std::string& path) {
  auto bytes = read_file(path, kMaxBundle_bytes);
  if (!bytes) return fail(bytes.error());
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  auto bundle = parse_lldb_bundle(as_text(*bytes), whole.parent_path().string());
  if (!bundle) bundle.error().what += " " + path;
  return bundle;
}

}  // namespace tailtrace
