#include "tests/support/pt_inputs.h"

#include <elf.h>
#include <fmt/core.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "decoder/base/file.h"

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
  input.code = std::move(code);
  input.trace = std::move(*trace);
  // What the generator's model of time is.
  input.config.timing = {1, 64, 3, 0};
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
