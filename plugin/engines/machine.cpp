#include "plugin/engines/machine.h"

#include <cpuid.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"
#include "decoder/base/text.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFile_bytes = 16u << 20;

// Empty when it cannot be read.
std::string read_text(const std::string& path) {
  auto bytes = read_file(path, kMaxFile_bytes);
  if (!bytes) return {};
  std::string text(as_text(*bytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

template <class T>
std::optional<T> read_number(const std::string& path, int base = 10) {
  std::string text = read_text(path);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// "key : value" of the lines of a file such as /proc/cpuinfo, in order.
std::vector<std::pair<std::string, std::string>> fields_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> fields;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view field = line;
    const std::size_t colon = field.find(':');
    if (colon != field.npos)
      fields.emplace_back(trim(field.substr(0, colon)), trim(field.substr(colon + 1)));
  }
  return fields;
}

int to_int(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> sorted_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  std::sort(words.begin(), words.end());
  return words;
}

Processor read_processor(const std::string& root) {
  Processor cpu;
  for (const auto& [key, value] : fields_of(read_text(root + "/proc/cpuinfo"))) {
    if (key == "processor") ++cpu.count;
    if (cpu.count > 1) continue;  // the others are alike as far as it matters here
    if (key == "vendor_id") cpu.vendor = value;
    if (key == "model name") cpu.name = value;
    if (key == "cpu family") cpu.family = to_int(value);
    if (key == "model") cpu.model = to_int(value);
    if (key == "stepping") cpu.stepping = to_int(value);
    if (key == "flags") cpu.flags = sorted_words(value);
  }
  return cpu;
}

std::vector<Pmu> read_pmus(const std::string& root) {
  std::vector<Pmu> pmus;
  std::error_code error;
  for (fs::directory_iterator entry(root + "/sys/bus/event_source/devices", error), end;
       !error && entry != end; entry.increment(error)) {
    auto type = read_number<int>(entry->path().string() + "/type");
    if (type) pmus.push_back({entry->path().filename().string(), *type});
  }
  std::sort(pmus.begin(), pmus.end(), [](const Pmu& a, const Pmu& b) { return a.name < b.name; });
  return pmus;
}

std::optional<int> read_lbr_depth(const std::string& root) {
  // Machines with two kinds of core have a PMU for each and none named "cpu".
  for (const char* pmu : {"cpu", "cpu_core", "cpu_atom"}) {
    auto depth = read_number<int>(root + "/sys/bus/event_source/devices/" + pmu + "/caps/branches");
    if (depth && *depth > 0) return depth;
  }
  return std::nullopt;
}

// What the processor says of the hypervisor under it (CPUID leaf 0x40000000): "KVM", "Xen", ...;
// empty when it says nothing.
std::string hypervisor_signature() {
  // Signatures as the vendors' interface documents give them.
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"KVMKVMKVM", "KVM"},     {"Microsoft Hv", "Hyper-V"}, {"VMwareVMware", "VMware"},
      {"XenVMMXenVMM", "Xen"},  {"TCGTCGTCGTCG", "QEMU"},    {"VBoxVBoxVBox", "VirtualBox"},
      {"bhyve bhyve ", "bhyve"}};
  unsigned eax = 0, text[3] = {};
  __cpuid(1, eax, text[0], text[1], text[2]);
  constexpr unsigned kHypervisorPresent = 1u << 31;  // leaf 1, ECX
  if ((text[1] & kHypervisorPresent) == 0) return {};
  __cpuid(0x40000000, eax, text[0], text[1], text[2]);
  char signature[sizeof text + 1] = {};
  std::memcpy(signature, text, sizeof text);
  for (auto [written, name] : kNames)
    if (written == signature) return std::string(name);
  return {};
}

std::string read_hypervisor(const std::string& root, const Processor& cpu) {
  if (std::string name = root.empty() ? hypervisor_signature() : ""; !name.empty()) return name;
  if (std::string type = read_text(root + "/sys/hypervisor/type"); !type.empty()) return type;
  if (!cpu.has("hypervisor")) return {};
  std::string product = read_text(root + "/sys/class/dmi/id/product_name");
  return product.empty() ? "unknown" : product;
}

// The kernel does not know containers; each kind leaves its own trace.
std::string read_container(const std::string& root) {
  std::error_code error;
  if (fs::exists(root + "/run/.containerenv", error)) return "podman";
  if (fs::exists(root + "/.dockerenv", error)) return "docker";
  std::string name = read_text(root + "/run/systemd/container");
  if (!name.empty()) return name;
  std::string groups = read_text(root + "/proc/1/cgroup");
  for (const char* kind : {"kubepods", "docker", "lxc", "libpod"})
    if (groups.find(kind) != std::string::npos) return kind;
  return {};
}

void read_own_rights(const std::string& root, Machine& machine) {
  for (const auto& [key, value] : fields_of(read_text(root + "/proc/self/status"))) {
    if (key == "Seccomp") machine.seccomp = to_int(value);
    if (key == "CapEff") machine.capabilities = parse_hex(value).value_or(0);
  }
}

}  // namespace

bool Processor::has(const std::string& flag) const {
  return std::binary_search(flags.begin(), flags.end(), flag);
}

const Pmu* Machine::pmu(const std::string& name) const {
  auto found =
      std::find_if(pmus.begin(), pmus.end(), [&](const Pmu& pmu) { return pmu.name == name; });
  return found == pmus.end() ? nullptr : &*found;
}

bool Machine::may(Capability capability) const {
  return (capabilities >> static_cast<unsigned>(capability)) & 1;
}

Machine read_machine(const std::string& root) {
  Machine machine;
  machine.cpu = read_processor(root);
  machine.kernel = read_text(root + "/proc/sys/kernel/osrelease");
  machine.pmus = read_pmus(root);
  machine.lbr_depth = read_lbr_depth(root);
  machine.perf_event_paranoid = read_number<int>(root + "/proc/sys/kernel/perf_event_paranoid");
  machine.perf_event_mlock_kb =
      read_number<std::int64_t>(root + "/proc/sys/kernel/perf_event_mlock_kb");
  machine.yama_ptrace_scope = read_number<int>(root + "/proc/sys/kernel/yama/ptrace_scope");
  machine.performance_cpus = read_text(root + "/sys/bus/event_source/devices/cpu_core/cpus");
  machine.isolates_page_tables =
      read_text(root + "/sys/devices/system/cpu/vulnerabilities/meltdown").find("PTI") !=
      std::string::npos;
  machine.hypervisor = read_hypervisor(root, machine.cpu);
  machine.container = read_container(root);
  read_own_rights(root, machine);
  return machine;
}

}  // namespace tailtrace
