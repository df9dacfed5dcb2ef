#include "decoder/bundle/lldb_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "decoder/history/symbolizer.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "decoder/symbols/code_phases.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kPsbPeriod_bytes = 16 << 10;

bool is_of_same_file(const Mapping& a, const Mapping& b) {
  return a.path == b.path &&
         a.begin.value - a.file_offset_bytes == b.begin.value - b.file_offset_bytes;
}

}  // namespace

// Whether LLDB, which knows each file in one place, will know it in this one.
bool LldbWriter::is_shown(Process& process, const Mapping& mapping) {
  auto [known, is_new] = process.shown.try_emplace({mapping.file(), mapping.begin}, false);
  if (!is_new) return known->second;
  Result<ElfFile> file = ElfFile::open(mapping.file());
  if (!file) return false;
  std::optional<std::uint64_t> bias = load_bias(file->segments(), process.mappings, mapping);
  if (!bias) return false;
  const Module module{mapping.path, mapping.file(), file->build_id(), *bias,
                      *bias + file->segments().front().address};
  known->second = process.modules.try_emplace(module.file, module).first->second.bias == *bias;
  return known->second;
}

// The files of a time that LLDB will know where they were, which may be none of what was executed.
std::vector<Mapping> LldbWriter::shown_of(Process& process, std::span<const Mapping> executed) {
  std::vector<Mapping> shown;
  for (const Mapping& mapping : executed) {
    const Mapping* now = mapping_at(process.mappings, mapping.begin);
    if (now == nullptr) continue;
    const bool is_there = is_of_same_file(*now, mapping);
    if (is_there && is_shown(process, *now))
      shown.push_back(mapping);
    else if (!is_there || process.modules.contains(mapping.file()))
      hidden_.insert(mapping.path);
  }
  return shown;
}

Bytes LldbWriter::add(const ThreadSnapshot& snapshot, const MappingsIn& mappings_in,
                      const std::string& name) {
  Process& process = processes_[snapshot.thread.pid];
  if (std::ranges::count(process.threads, snapshot.thread.tid, &Thread::tid) != 0) {
    process = {};
    hidden_.insert(
        fmt::format("process {} before it executed another program", snapshot.thread.pid));
  }
  if (auto mappings = mappings_in(kNewestEpoch); !mappings.empty())
    process.mappings = std::move(mappings);
  pt::SynthesisOptions options;
  options.newest_code = true;
  // LLDB repeats an instruction at each PSB that comes while tracing is on.
  options.pause_at_psb = true;
  options.psb_period_bytes = kPsbPeriod_bytes;
  Bytes trace;
  for (const CodePhase& phase : code_phases(snapshot, kInstructions)) {
    CodeImage shown;
    files_.add_to(shown,
                  shown_of(process, executed_files(mappings_in(phase.first), phase.records)));
    auto bytes =
        pt::synthesize(phase.records, with_newest(*snapshot.code, shown), phase.first, options);
    if (!bytes) return {};
    trace.insert(trace.end(), bytes->begin(), bytes->end());
  }
  process.threads.push_back({snapshot.thread.tid, name});
  return trace;
}

std::vector<Error> LldbWriter::remarks() const {
  std::vector<Error> remarks;
  for (const std::string& path : hidden_) {
    Error& remark = remarks.emplace_back();
    remark.code = ErrorCode::kGone;
    remark.what = "LLDB cannot show all that ran in " + path;
    remark.why =
        "LLDB knows one program of each process, one file of each place, and one place of each "
        "file";
    remark.now = "there are gaps in LLDB's trace; tailtrace shows it";
  }
  return remarks;
}

std::string LldbWriter::description(const std::string& folder) const {
  auto json_of = [&](const Module& module) {
    OrderedJson json = {{"systemPath", module.path}, {"loadAddress", module.load_address}};
    if (module.file != module.path) json["file"] = module.file.substr(folder.size() + 1);
    // LLDB refuses a file that has another one by then.
    if (!module.build_id.empty()) json["uuid"] = module.build_id;
    return json;
  };
  OrderedJson processes = OrderedJson::array();
  for (const auto& [pid, process] : processes_) {
    OrderedJson threads = OrderedJson::array(), modules = OrderedJson::array();
    for (const Thread& thread : process.threads)
      threads.push_back({{"tid", thread.tid}, {"iptTrace", thread.trace}});
    std::map<std::uint64_t, const Module*> by_address;
    for (const auto& [file, module] : process.modules) by_address[module.load_address] = &module;
    for (const auto& [address, module] : by_address) modules.push_back(json_of(*module));
    processes.push_back({{"pid", pid},
                         {"triple", "x86_64-*-linux"},
                         {"threads", std::move(threads)},
                         {"modules", std::move(modules)}});
  }
  // The trace is no processor's: any that decoders know will do.
  OrderedJson cpu = {{"vendor", "GenuineIntel"}, {"family", 6}, {"model", 85}, {"stepping", 4}};
  OrderedJson json = {{"type", "intel-pt"}, {"cpuInfo", std::move(cpu)}, {"processes", processes}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace tailtrace
