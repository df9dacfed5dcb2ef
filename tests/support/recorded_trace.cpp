#include "tests/support/recorded_trace.h"

#include <array>
#include <fstream>
#include <set>

#include "decoder/code/instruction.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/qemu_recording.h"

namespace tailtrace::pt {
namespace {

constexpr std::uint64_t kPage_bytes = 4096;

// By number.
std::set<std::uint64_t> executed_pages(const std::vector<BranchRecord>& records) {
  std::set<std::uint64_t> pages;
  Address begin;
  for (const BranchRecord& record : records) {
    // An instruction may reach into the next page.
    if (!begin.is_null() && begin <= record.from)
      for (std::uint64_t page = begin.value / kPage_bytes;
           page <= (record.from.value + kMaxInstructionSize_bytes) / kPage_bytes; ++page)
        pages.insert(page);
    begin = record.to;
  }
  return pages;
}

Result<std::vector<FileSection>> write_code(const CodeImage& code,
                                            const std::set<std::uint64_t>& pages,
                                            const std::string& path) {
  std::vector<FileSection> sections;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  std::uint64_t written_bytes = 0;
  for (std::uint64_t page : pages) {
    std::array<std::uint8_t, kPage_bytes> bytes;
    const Address address{page * kPage_bytes};
    const std::size_t known = code.read(address, bytes, code.newest());
    if (known == 0) continue;
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(known));
    FileSection* last = sections.empty() ? nullptr : &sections.back();
    if (last != nullptr && last->address + last->size_bytes == address.value)
      last->size_bytes += known;
    else
      sections.push_back({path, written_bytes, known, address.value});
    written_bytes += known;
  }
  if (!file.flush()) return fail(ErrorCode::kSystem, "cannot write " + path);
  return sections;
}

}  // namespace

Result<PtInput> record_as_pt(const std::vector<std::string>& program, std::uint64_t limit_records,
                             const std::string& code_path) {
  QemuOptions options = test_options(program);
  options.ring_records = limit_records;
  Result<Recording> recording = record_to_end(options);
  if (!recording) return fail(std::move(recording.error()));
  const ThreadSnapshot& snapshot = recording->processes.front().threads.front().snapshot;
  SynthesisOptions synthesis;
  synthesis.newest_code = true;
  synthesis.limit_bytes = 1ull << 33;
  Result<Bytes> trace =
      synthesize(snapshot.records, *snapshot.code, snapshot.first_epoch, synthesis);
  if (!trace) return fail(std::move(trace.error()));
  auto files = write_code(*snapshot.code, executed_pages(snapshot.records), code_path);
  if (!files) return fail(std::move(files.error()));
  PtInput input;
  input.name = program.front().substr(program.front().rfind('/') + 1);
  input.files = std::move(*files);
  input.code = snapshot.code;
  input.trace = std::move(*trace);
  input.config.first_epoch = snapshot.code->newest();
  return input;
}

}  // namespace tailtrace::pt
