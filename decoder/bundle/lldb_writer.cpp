#include "decoder/bundle/lldb_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_set>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/code/maps_line.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "decoder/symbols/deleted_files.h"
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

// Of what was deleted there are copies.
std::vector<Mapping> mappings_in(std::string_view maps, const BundleAbout& about,
                                 const std::string& folder) {
  std::vector<Mapping> mappings = parse_maps(maps);
  for (Mapping& mapping : mappings) {
    const std::string deleted(deleted_path(mapping));
    if (deleted.empty()) continue;
    mapping.readable_at = copy_of(about, deleted, folder);
    if (!mapping.readable_at.empty())
      mapping.path = deleted.substr(0, deleted.size() - kDeletedWord.size());
  }
  return mappings;
}

OrderedJson modules_of(std::span<const Mapping> mappings, std::span<const std::uint64_t> pages,
                       const std::string& folder) {
  OrderedJson modules = OrderedJson::array();
  std::set<std::string> known;
  for (const Mapping& mapping : mappings) {
    if (!mapping.has_file() || known.contains(mapping.file()) || !holds_code(mapping, pages))
      continue;
    Result<ElfFile> file = ElfFile::open(mapping.file());
    if (!file) continue;
    std::optional<std::uint64_t> bias = load_bias(file->segments(), mappings, mapping);
    if (!bias) continue;
    known.insert(mapping.file());
    OrderedJson module = {{"systemPath", mapping.path},
                          {"loadAddress", *bias + file->segments().front().address}};
    if (!mapping.readable_at.empty())
      module["file"] = mapping.readable_at.substr(folder.size() + 1);
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

std::string LldbWriter::description(const BundleAbout& about, const std::string& folder) const {
  OrderedJson processes = OrderedJson::array();
  for (const auto& [pid, process] : processes_) {
    OrderedJson threads = OrderedJson::array();
    for (const Thread& thread : process.threads)
      threads.push_back({{"tid", thread.tid}, {"iptTrace", thread.trace}});
    processes.push_back(
        {{"pid", pid},
         {"triple", "x86_64-*-linux"},
         {"threads", std::move(threads)},
         {"modules", modules_of(mappings_in(process.maps, about, folder), process.pages, folder)}});
  }
  // The trace is no processor's: any that decoders know will do.
  OrderedJson cpu = {{"vendor", "GenuineIntel"}, {"family", 6}, {"model", 85}, {"stepping", 4}};
  OrderedJson json = {{"type", "intel-pt"}, {"cpuInfo", std::move(cpu)}, {"processes", processes}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace tailtrace
