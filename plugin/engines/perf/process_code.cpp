#include "plugin/engines/perf/process_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "decoder/base/file.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint8_t kInt3 = 0xcc;

ProcessCode::Read reader_of(std::int32_t pid) {
  return [pid](Address address, std::span<std::uint8_t> out) -> std::size_t {
    UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!memory) return 0;
    std::size_t done = 0;
    while (done < out.size()) {
      ssize_t size = ::pread(memory.get(), out.data() + done, out.size() - done,
                             static_cast<off_t>(address.value + done));
      if (size <= 0) break;
      done += static_cast<std::size_t>(size);
    }
    return done;
  };
}

// Only the process itself can change it, by a system call that the map shows.
bool is_stable(const MemoryRegion& region) {
  return !region.writable && !region.shared && !region.path.empty();
}

}  // namespace

ProcessCode::ProcessCode(std::int32_t pid, Read read)
    : pid_(pid),
      own_read_(!read),
      read_(read ? std::move(read) : reader_of(pid)),
      image_(std::make_shared<CodeImage>()) {}

Bytes ProcessCode::read_region(const MemoryRegion& region) const {
  std::uint64_t room = kMaxImage_bytes - std::min(kMaxImage_bytes, size_bytes_);
  Bytes bytes(std::min(room, region.end - region.begin));
  bytes.resize(read_(region.begin, bytes));
  if (own_read_) hide_breakpoints(region, bytes);
  return bytes;
}

// Debuggers put INT3 into private copies of file pages; the file still has what was there.
void ProcessCode::hide_breakpoints(const MemoryRegion& region, Bytes& bytes) const {
  if (region.writable || !region.path.starts_with('/')) return;
  auto file = MappedFile::open(fmt::format("/proc/{}/root{}", pid_, region.path));
  if (!file || file->bytes().size() <= region.offset_bytes) return;
  ByteSpan original = file->bytes().subspan(region.offset_bytes);
  std::size_t common = std::min(original.size(), bytes.size());
  if (std::equal(bytes.data(), bytes.data() + common, original.data())) return;  // nearly always
  std::size_t differing = 0;
  for (std::size_t i = 0; i < common; ++i) differing += bytes[i] != original[i];
  // Another file by that name now, or code that rewrote itself: then no byte of it is believed.
  constexpr std::size_t kMostBreakpoints = 4096;
  if (differing > kMostBreakpoints) return;
  for (std::size_t i = 0; i < common; ++i)
    if (bytes[i] == kInt3) bytes[i] = original[i];
}

Result<std::uint32_t> ProcessCode::update() {
  MemoryMap map = MemoryMap::of_process(pid_);
  if (map.regions().empty())
    return fail(ErrorCode::kGone, fmt::format("cannot read the code of process {}", pid_),
                "it has no memory map: it is gone, or may not be looked at");
  auto next = std::make_shared<CodeImage>(*image_);
  const Epoch epoch{first_ ? 0 : image_->newest().value + 1};
  bool changed = false;
  std::map<Address, Held> held;
  for (const MemoryRegion& region : map.regions()) {
    if (!region.executable) continue;
    auto known = held_.find(region.begin);
    bool same = known != held_.end() && known->second.region == region;
    if (same && is_stable(region)) {
      held.insert(held_.extract(known));
      continue;
    }
    Bytes bytes = read_region(region);
    if (same && known->second.bytes == bytes) {
      held.insert(held_.extract(known));
      continue;
    }
    changed = true;
    size_bytes_ += bytes.size();
    Held now{region, is_stable(region) ? Bytes() : bytes, bytes.size()};
    if (!bytes.empty())
      if (auto ok = next->add(region.begin, std::move(bytes), epoch); !ok)
        return fail(std::move(ok.error()));
    held.emplace(region.begin, std::move(now));
  }
  held_ = std::move(held);
  if (!changed) return 0u;
  bool began = !first_;
  first_ = false;
  image_ = std::move(next);
  return began ? 1u : 0u;
}

}  // namespace tailtrace::perf
