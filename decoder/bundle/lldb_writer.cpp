#include "decoder/bundle/lldb_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_set>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kPsbPeriod_bytes = 16 << 10;

// Whether a record leads into the mapping. (What qemu executes is mapped, but not as code.)
bool holds_code(const Mapping& mapping, std::span<const std::uint64_t> pages) {
  auto page = std::ranges::lower_bound(pages, mapping.begin.value / kPage_bytes);
  return page != pages.end() && *page * kPage_bytes < mapping.end.value;
}

OrderedJson modules_of(std::string_view maps, std::span<const std::uint64_t> pages) {
  OrderedJson modules = OrderedJson::array();
  std::set<std::string> known;
  const std::vector<Mapping> mappings = parse_maps(maps);
  for (const Mapping& mapping : mappings) {
    if (!mapping.has_file() || known.contains(mapping.path) || !holds_code(mapping, pages))
      continue;
    Result<ElfFile> file = ElfFile::open(mapping.path);
    if (!file) continue;
    std::optional<std::uint64_t> bias = load_bias(file->segments(), mappings, mapping);
    if (!bias) continue;
    known.insert(mapping.path);
    OrderedJson module = {{"systemPath", mapping.path},
                          {"loadAddress", *bias + file->segments().front().address}};
    // LLDB refuses a file that has another one by then.
    if (std::string id = file->build_id(); !id.empty()) module["uuid"] = id;
    modules.push_back(std::move(module));
  }
  return modules;
}

void note_pages(std::span<const BranchRecord> records, std::vector<std::uint64_t>& pages) {
  std::unordered_set<std::uint64_t> found(pages.begin(), pages.end());
  for (const BranchRecord& record : records)
    for (Address address : {record.from, record.to}) found.insert(address.value / kPage_bytes);
  pages.assign(found.begin(), found.end());
  std::ranges::sort(pages);
}

}  // namespace

Bytes LldbWriter::add(const ThreadSnapshot& snapshot, std::string_view maps,
                      const std::string& name) {
  pt::SynthesisOptions options;
  options.newest_instructions = kInstructions;
  options.newest_code = true;
  // LLDB repeats an instruction at each PSB that comes while tracing is on.
  options.pause_at_psb = true;
  options.psb_period_bytes = kPsbPeriod_bytes;
  auto bytes = pt::synthesize(snapshot.records, *snapshot.code, snapshot.first_epoch, options);
  if (!bytes) return {};
  Process& process = processes_[snapshot.thread.pid];
  if (!maps.empty()) process.maps = maps;
  note_pages(snapshot.records, process.pages);
  process.threads.push_back({snapshot.thread.tid, name});
  return std::move(*bytes);
}

std::string LldbWriter::description() const {
  OrderedJson processes = OrderedJson::array();
  for (const auto& [pid, process] : processes_) {
    OrderedJson threads = OrderedJson::array();
    for (const Thread& thread : process.threads)
      threads.push_back({{"tid", thread.tid}, {"iptTrace", thread.trace}});
    processes.push_back({{"pid", pid},
                         {"triple", "x86_64-*-linux"},
                         {"threads", std::move(threads)},
                         {"modules", modules_of(process.maps, process.pages)}});
  }
  // The trace is no processor's: any that decoders know will do.
  OrderedJson cpu = {{"vendor", "GenuineIntel"}, {"family", 6}, {"model", 85}, {"stepping", 4}};
  OrderedJson json = {{"type", "intel-pt"}, {"cpuInfo", std::move(cpu)}, {"processes", processes}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace tailtrace
