// What QemuLink tells of a program that the stub does not know of: libraries, threads' names, what
// came with a signal, what is mapped, where thread-local variables are.
#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/engines/tasks.h"
#include "plugin/server/qemu/library_list.h"
#include "plugin/server/qemu/memory_region.h"
#include "plugin/server/qemu/qemu_link.h"
#include "plugin/server/qemu/thread_list.h"
#include "plugin/server/qemu/thread_local.h"

namespace tailtrace {
namespace {

// In the stub's answer to `g` 17 registers of 8 bytes and 7 of 4 come before fs_base
// (gdb-xml/i386-64bit.xml in qemu).
constexpr std::size_t kFsBase_bytes = 17 * 8 + 7 * 4;

ReadGuest reader_of(QemuInferior& inferior) {
  return [&inferior](Address address, std::span<std::uint8_t> out) {
    return inferior.read_memory(address, out);
  };
}

struct WantedVariable {
  rsp::ThreadSelector thread;
  std::uint64_t offset = 0;
  Address link_map;
};

// THREAD,OFFSET,LINKMAP
std::optional<WantedVariable> parse_variable(std::string_view wanted) {
  const std::size_t comma = wanted.find(','), next = wanted.rfind(',');
  if (comma == wanted.npos || next == comma) return std::nullopt;
  auto thread = rsp::parse_thread(wanted.substr(0, comma));
  auto offset = parse_hex(wanted.substr(comma + 1, next - comma - 1));
  auto link_map = parse_hex(wanted.substr(next + 1));
  if (!thread || !thread->is_thread() || !offset || !link_map) return std::nullopt;
  return WantedVariable{*thread, *offset, {*link_map}};
}

}  // namespace

WasExecuted QemuInferior::was_executed() {
  return [this](Address begin, Address end) { return engine_.has_executed(begin, end); };
}

std::optional<std::string> QemuInferior::maps(const std::string& file) {
  auto text = maps_of_host(file);
  // Whoever saves memory looks at the kernel's details (smaps), not at what may be executed.
  return text && file == "maps" ? maps_with_code(*text, was_executed()) : text;
}

std::string QemuInferior::region_at(std::uint64_t address) {
  if (!maps_) maps_ = maps_of_host("maps");
  return maps_ ? memory_region(*maps_, address, was_executed()) : std::string(rsp::kFailed);
}

QemuLink::Answer QemuLink::answer_untold(std::string_view request) {
  static constexpr std::string_view kVariable = "qGetTLSAddr:", kRegion = "qMemoryRegionInfo:";
  Result<std::string> text;
  auto transfer = rsp::parse_transfer_read(request);
  if (request.starts_with(kVariable))
    text = thread_local_variable(request.substr(kVariable.size()));
  else if (request.starts_with(kRegion))
    text = memory_region_at(request.substr(kRegion.size()));
  else if (transfer && transfer->object == "libraries-svr4")
    text = libraries(*transfer);
  else if (transfer && transfer->object == "threads")
    text = threads(*transfer);
  else if (transfer && transfer->object == "siginfo")
    text = signal_info(*transfer);
  else
    return std::optional<std::string>();
  if (!text) return fail(std::move(text.error()));
  return std::optional(std::move(*text));
}

// An error has the debugger look for itself.
std::string QemuLink::libraries(const rsp::TransferRequest& request) {
  QemuInferior* inferior = selected();
  if (inferior == nullptr || !request.annex.empty()) return std::string(rsp::kFailed);
  auto list = loaded_libraries(inferior->auxiliary_vector(), reader_of(*inferior));
  return list ? rsp::transfer_answer(library_document(*list), request) : std::string(rsp::kFailed);
}

std::string QemuLink::signal_info(const rsp::TransferRequest& request) {
  QemuInferior* inferior = selected();
  if (inferior == nullptr || inferior->signal_info().empty() ||
      inferior->stopped_thread() != general_)
    return std::string(rsp::kFailed);
  return rsp::transfer_answer(as_text(inferior->signal_info()), request);
}

std::string QemuLink::memory_region_at(std::string_view digits) {
  QemuInferior* inferior = selected();
  auto address = parse_hex(digits);
  return inferior != nullptr && address ? inferior->region_at(*address) : std::string(rsp::kFailed);
}

Result<std::string> QemuLink::threads(const rsp::TransferRequest& request) {
  auto all = all_threads();
  if (!all) return fail(std::move(all.error()));
  std::vector<NamedThread> named;
  for (ThreadId thread : *all) named.push_back({thread, name_of("", thread)});
  return rsp::transfer_answer(thread_list(named), request);
}

Result<std::string> QemuLink::thread_local_variable(std::string_view request) {
  auto wanted = parse_variable(request);
  QemuInferior* inferior = wanted ? programs_.find(wanted->thread.pid) : nullptr;
  if (inferior == nullptr) return std::string(rsp::kFailed);
  auto digits = inferior->ask_of(wanted->thread.thread(), "g");
  if (!digits) return digits;
  auto registers = from_hex(*digits);
  if (!registers || registers->size() < kFsBase_bytes + sizeof(std::uint64_t))
    return std::string(rsp::kFailed);
  const Address thread_pointer{load<std::uint64_t>(*registers, kFsBase_bytes)};
  const ReadGuest read = reader_of(*inferior);
  auto libraries = loaded_libraries(inferior->auxiliary_vector(), read);
  auto module = tls_module(libraries.value_or(LibraryList()), wanted->link_map, read);
  if (!module) return std::string(rsp::kFailed);
  auto address = tls_address(thread_pointer, *module, wanted->offset, read);
  return address ? fmt::format("{:x}", address->value) : std::string(rsp::kFailed);
}

}  // namespace tailtrace
