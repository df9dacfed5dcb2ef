#include "tests/support/pt_inputs.h"

#include <elf.h>
#include <fmt/core.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decoder/base/file.h"
#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace::pt {
namespace {

constexpr std::size_t kLimit_bytes = std::size_t{1} << 33;

Result<void> add_elf(CodeImage& code, std::vector<FileSection>& files, const std::string& path,
                     std::uint64_t load_address) {
  Result<Bytes> file = read_file(path, kLimit_bytes);
  if (!file) return fail(std::move(file.error()));
  auto bytes = std::make_shared<Bytes>(std::move(*file));
  if (bytes->size() < sizeof(Elf64_Ehdr))
    return fail(ErrorCode::kBadInput, path + " is no ELF file");
  auto header = load<Elf64_Ehdr>(*bytes);
  bool first = true;
  std::uint64_t bias = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto segment = load<Elf64_Phdr>(*bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD) continue;
    if (std::exchange(first, false))
      bias = load_address - (segment.p_vaddr & ~std::uint64_t{0xfff});
    if ((segment.p_flags & PF_X) == 0) continue;
    auto added = code.add({segment.p_vaddr + bias},
                          ByteSpan(*bytes).subspan(segment.p_offset, segment.p_filesz), bytes);
    if (!added) return added;
    files.push_back({path, segment.p_offset, segment.p_filesz, segment.p_vaddr + bias});
  }
  return {};
}

std::uint64_t number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<std::uint64_t>();
  return std::strtoull(value.get<std::string>().c_str(), nullptr, 0);
}

// What a generator says of an event; the kind of a changed code page is 6.
struct GeneratedEvent {
  std::uint64_t block;  // so many had been executed
  std::uint32_t kind, reserved;
  std::uint64_t address, version, tsc;
};
constexpr std::uint32_t kPageChanged = 6;

// PREFIX.truth: 8 bytes, counts of block kinds, of blocks, of events; then 16 bytes for each kind,
// 4 for each block, and the events.
std::vector<GeneratedEvent> read_page_changes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t header[4] = {};
  file.read(reinterpret_cast<char*>(header), sizeof header);
  file.seekg(static_cast<std::streamoff>(sizeof header + header[1] * 16 + header[2] * 4));
  std::vector<GeneratedEvent> changes;
  for (GeneratedEvent event; file.read(reinterpret_cast<char*>(&event), sizeof event);)
    if (event.kind == kPageChanged) changes.push_back(event);
  return changes;
}

// Where in a trace a time is. CYC packets of the generator count every cycle of its only clock, so
// that they tell exactly; without them it is the TSC before.
class PacketClock {
 public:
  explicit PacketClock(ByteSpan trace) : packets_(trace) {}

  // The last timing packet before `tsc`. REQUIRES: `tsc` is not less than the one before.
  std::uint64_t offset_before(std::uint64_t tsc) {
    while (next_time_ < tsc && read_on()) {
    }
    return offset_;
  }

 private:
  bool read_on() {
    offset_ = next_offset_;
    time_ = next_time_;
    for (Packet packet;;) {
      next_offset_ = packets_.offset();
      if (packets_.next(packet) != ReadStatus::kOk) return false;
      if (packet.kind != PacketKind::kTsc && packet.kind != PacketKind::kCyc) continue;
      next_time_ = packet.kind == PacketKind::kTsc ? packet.payload : time_ + packet.payload;
      return true;
    }
  }

  PacketReader packets_;
  std::uint64_t offset_ = 0, time_ = 0, next_offset_ = 0, next_time_ = 0;
};

// PREFIX.versions: 16 bytes that say where and when, then the page, again and again.
Result<void> add_changes(const std::string& prefix, CodeImage& code, PtInput& input) {
  constexpr std::size_t kPage_bytes = 4096, kVersion_bytes = 16 + kPage_bytes;
  std::vector<GeneratedEvent> changes = read_page_changes(prefix + ".truth");
  if (changes.empty()) return {};
  Result<Bytes> versions = read_file(prefix + ".versions", kLimit_bytes);
  if (!versions) return fail(std::move(versions.error()));
  auto bytes = std::make_shared<Bytes>(std::move(*versions));
  PacketClock clock(input.trace);
  Epoch epoch;
  for (const GeneratedEvent& change : changes) {
    std::uint64_t at = change.version * kVersion_bytes + 16;
    if (at + kPage_bytes > bytes->size())
      return fail(ErrorCode::kBadInput, prefix + ".versions is too short");
    epoch = Epoch{epoch.value + 1};
    auto page = ByteSpan(*bytes).subspan(at, kPage_bytes);
    auto added = code.add({change.address}, page, bytes, epoch);
    if (!added) return added;
    input.config.code_changes.push_back({clock.offset_before(change.tsc), 0, epoch});
    input.change_blocks.push_back(change.block);
  }
  return {};
}

}  // namespace

Result<PtInput> load_trace_json(const std::string& path) {
  Result<Bytes> text = read_file(path, kLimit_bytes);
  if (!text) return fail(std::move(text.error()));
  auto json = nlohmann::json::parse(text->begin(), text->end(), nullptr, false);
  if (json.is_discarded()) return fail(ErrorCode::kBadInput, path + " is no JSON");
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  PtInput input;
  input.name = folder.filename().string();
  const auto& cpu = json["cpuInfo"];
  input.config.cpu = {cpu["family"].get<std::uint16_t>(), cpu["model"].get<std::uint8_t>(),
                      cpu["stepping"].get<std::uint8_t>()};
  input.config.errata = errata_of(input.config.cpu);
  const auto& process = json["processes"][0];
  auto code = std::make_shared<CodeImage>();
  for (const auto& module : process["modules"]) {
    auto added = add_elf(*code, input.files, folder / module["file"].get<std::string>(),
                         number_of(module["loadAddress"]));
    if (!added) return fail(std::move(added.error()));
  }
  Result<Bytes> trace =
      read_file(folder / process["threads"][0]["iptTrace"].get<std::string>(), kLimit_bytes);
  if (!trace) return fail(std::move(trace.error()));
  input.trace = std::move(*trace);
  input.code = std::move(code);
  return input;
}

Result<PtInput> load_generated(const std::string& prefix) {
  Result<Bytes> trace = read_file(prefix + ".pt", kLimit_bytes);
  if (!trace) return fail(std::move(trace.error()));
  Result<Bytes> image = read_file(prefix + ".img", kLimit_bytes);
  if (!image) return fail(std::move(image.error()));
  auto bytes = std::make_shared<Bytes>(std::move(*image));
  std::FILE* list = std::fopen((prefix + ".sections").c_str(), "r");
  if (list == nullptr) return fail(system_error("cannot read " + prefix + ".sections"));
  PtInput input;
  input.name = std::filesystem::path(prefix).filename().string();
  auto code = std::make_shared<CodeImage>();
  char line[4096];
  while (std::fgets(line, sizeof line, list) != nullptr) {
    std::uint64_t address = 0, size = 0, offset = 0;
    if (std::sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &address, &size, &offset) != 3)
      continue;
    auto added = code->add({address}, ByteSpan(*bytes).subspan(offset, size), bytes);
    if (added) input.files.push_back({prefix + ".img", offset, size, address});
  }
  std::fclose(list);
  input.trace = std::move(*trace);
  if (auto added = add_changes(prefix, *code, input); !added) return fail(added.error());
  input.code = std::move(code);
  // The model of time of the generator: TSC and core clock are the same, CBR says 30.
  input.config.timing = {1, 64, 3, 30};
  return input;
}

std::optional<std::string> real_pt_folder() {
  const char* named = std::getenv("TAILTRACE_REAL_PT");
  std::filesystem::path folder =
      named != nullptr ? std::filesystem::path(named)
                       : std::filesystem::path(TAILTRACE_SOURCE_DIR) / "../shared/data/real-pt";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return std::nullopt;
  return folder.string();
}

Result<std::vector<std::uint64_t>> read_addresses_xz(const std::string& path) {
  std::FILE* pipe = ::popen(fmt::format("xz -dc '{}'", path).c_str(), "r");
  if (pipe == nullptr) return fail(system_error("cannot run xz"));
  std::vector<std::uint64_t> addresses;
  std::uint64_t buffer[4096];
  while (std::size_t n = std::fread(buffer, sizeof buffer[0], std::size(buffer), pipe))
    addresses.insert(addresses.end(), buffer, buffer + n);
  if (::pclose(pipe) != 0) return fail(ErrorCode::kBadInput, "cannot unpack " + path);
  return addresses;
}

}  // namespace tailtrace::pt
