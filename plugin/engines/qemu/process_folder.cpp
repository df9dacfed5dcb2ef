#include "plugin/engines/qemu/process_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "decoder/code/former_maps.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/engines/qemu/process_state.h"

namespace tailtrace {
namespace {

// A thread's maker names its ring when the system call that made it is back.
constexpr int kMaxNaming_ms = 1000;

Error bad_file(const std::string& path, std::string why) {
  return Error{
      ErrorCode::kBadInput, "cannot read the recording file " + path, std::move(why), {}, {}};
}

Error wrong_version(const std::string& path, std::uint32_t version, std::uint32_t known) {
  Error error = bad_file(
      path, fmt::format("it has version {}, this program reads version {}", version, known));
  error.fix = "record again, or read it with the tailtrace that wrote it";
  return error;
}

std::optional<std::uint32_t> slot_in_name(std::string_view name) {
  constexpr std::string_view kBefore = "thread.", kAfter = ".ring";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return std::nullopt;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(kAfter.size());
  std::uint32_t slot = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), slot);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return slot;
}

// Whether a ring has the header that it gets when it is made.
bool is_begun(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::file_size(path, unknown) == 0) return false;
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return true;
  const ByteSpan magic = file->bytes().first(std::min(file->bytes().size(), sizeof kRingMagic));
  return std::ranges::any_of(magic, [](std::uint8_t byte) { return byte != 0; });
}

}  // namespace

Result<ProcessFolder> ProcessFolder::open(const std::string& path) {
  ProcessFolder folder;
  folder.path_ = path;
  if (auto ok = folder.read_process_file(); !ok) return fail(std::move(ok.error()));
  if (auto ok = folder.open_blocks(); !ok) return fail(std::move(ok.error()));
  if (auto ok = folder.open_code(); !ok) return fail(std::move(ok.error()));
  return folder;
}

Result<void> ProcessFolder::read_process_file() {
  constexpr std::size_t kMaxSize_bytes = 1 << 16;
  std::string path = path_ + "/" + kProcessName;
  Result<Bytes> text = read_file(path, kMaxSize_bytes);
  if (!text) return fail(std::move(text.error()));
  auto json = nlohmann::json::parse(text->begin(), text->end(), nullptr, false);
  if (!json.is_object()) return fail(bad_file(path, "it is not a JSON object"));
  if (!json.contains("schema") || json["schema"] != "tailtrace-process-1")
    return fail(bad_file(path, "its schema is not tailtrace-process-1"));
  auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number_unsigned() ? json[name].get<std::uint64_t>()
                                                                  : 0;
  };
  pid_ = static_cast<std::int32_t>(number("pid"));
  program_index_ = static_cast<std::uint32_t>(number("program"));
  start_time_ = number("start_time");
  has_stub_ = json.contains("stub") && json["stub"].is_boolean() && json["stub"].get<bool>();
  return {};
}

Result<void> ProcessFolder::open_blocks() {
  std::string path = path_ + "/" + kBlocksName;
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  if (file->bytes().size() < kLogHeaderSize_bytes) return fail(bad_file(path, "it is cut short"));
  const auto& h = *reinterpret_cast<const BlocksHeader*>(file->bytes().data());
  if (std::memcmp(h.magic, kBlocksMagic, sizeof h.magic) != 0)
    return fail(bad_file(path, "it does not begin as a table of blocks does"));
  if (h.version != kBlocksVersion) return fail(wrong_version(path, h.version, kBlocksVersion));
  std::uint64_t room = (file->bytes().size() - kLogHeaderSize_bytes) / sizeof(RingBlock);
  if (h.block_size_bytes != sizeof(RingBlock) || h.capacity > room)
    return fail(bad_file(path, fmt::format("it is cut short: {} blocks of {}", room, h.capacity)));
  blocks_ = &h;
  blocks_file_ = std::move(*file);
  return {};
}

Result<void> ProcessFolder::open_code() {
  std::string path = path_ + "/" + kCodeName;
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  if (file->bytes().size() < kLogHeaderSize_bytes) return fail(bad_file(path, "it is cut short"));
  const auto& h = *reinterpret_cast<const CodeHeader*>(file->bytes().data());
  if (std::memcmp(h.magic, kCodeMagic, sizeof h.magic) != 0)
    return fail(bad_file(path, "it does not begin as a log of code does"));
  if (h.version != kCodeVersion) return fail(wrong_version(path, h.version, kCodeVersion));
  code_ = &h;
  code_file_ = std::make_shared<const MappedFile>(std::move(*file));
  return {};
}

bool ProcessFolder::is_alive() const {
  return start_time_ != 0 && process_start_time(pid_) == start_time_;
}

std::string ProcessFolder::perf_map() const {
  const std::string kept = path_ + "/" + kPerfMapName;
  std::error_code ignored;
  if (std::filesystem::exists(kept, ignored)) return kept;
  return is_alive() ? perf_map_of(pid_) : std::string();
}

RecordingLosses ProcessFolder::losses() const {
  return {blocks_->lost_blocks.load(), blocks_->lost_threads.load(), blocks_->lost_rings.load()};
}

Result<void> ProcessFolder::set_thread_room(std::uint64_t threads) {
  return write_header(&threads, sizeof threads, offsetof(BlocksHeader, thread_room));
}

Result<void> ProcessFolder::set_watched(const WatchedMemory& watched) {
  return write_header(&watched, sizeof watched, offsetof(BlocksHeader, watched));
}

Result<void> ProcessFolder::set_stepped(const SteppedThreads& stepped) {
  return write_header(&stepped, sizeof stepped, offsetof(BlocksHeader, stepped));
}

Result<void> ProcessFolder::set_caught(const CaughtNumbers& caught) {
  return write_header(&caught, sizeof caught, offsetof(BlocksHeader, caught));
}

Result<void> ProcessFolder::set_passed(const PassedNumbers& passed) {
  return write_header(&passed, sizeof passed, offsetof(BlocksHeader, passed));
}

Result<void> ProcessFolder::set_letting_go(const LettingGo& letting_go) {
  return write_header(&letting_go, sizeof letting_go, offsetof(BlocksHeader, letting_go));
}

Result<void> ProcessFolder::write_header(const void* from, std::size_t size_bytes,
                                         std::size_t offset) {
  const std::string path = path_ + "/" + kBlocksName;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ssize_t written = file ? ::pwrite(file.get(), from, size_bytes, static_cast<off_t>(offset)) : -1;
  if (written == static_cast<ssize_t>(size_bytes)) return {};
  return fail(system_error("cannot write to the recording file " + path));
}

Result<void> ProcessFolder::find_rings() {
  if (knows_all_rings_) return {};
  const bool was_alive = is_alive();
  damaged_.clear();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    auto slot = slot_in_name(entry.path().filename().string());
    if (!slot || rings_.count(*slot) != 0) continue;
    Result<Ring> ring = Ring::open(entry.path().string());
    // It is just being made, or was when the process was killed.
    if (!ring && (is_alive() || !is_begun(entry.path()))) continue;
    if (ring)
      rings_.emplace(*slot, std::move(*ring));
    else
      damaged_.push_back(std::move(ring.error()));
  }
  if (rings_.empty() && !damaged_.empty()) return fail(damaged_.front());
  // A folder that is gone has no new rings; those already open stay readable.
  if (error && rings_.empty())
    return fail(system_error("cannot list the recording " + path_, error.value()));
  knows_all_rings_ = !was_alive;
  return {};
}

Result<std::vector<const Ring*>> ProcessFolder::rings() {
  if (auto ok = find_rings(); !ok) return fail(std::move(ok.error()));
  std::vector<const Ring*> all;
  for (const auto& [slot, ring] : rings_) all.push_back(&ring);
  std::ranges::stable_partition(all, [](const Ring* r) { return r->header().ended_by != 0; });
  return all;
}

const Ring* ProcessFolder::known_ring_of(std::int32_t tid) const {
  for (auto it = rings_.rbegin(); it != rings_.rend(); ++it)
    if (it->second.thread().tid == tid) return &it->second;
  return nullptr;
}

Result<const Ring*> ProcessFolder::ring_of(std::int32_t tid) {
  // The number of a thread that has not ended is no other's.
  const Ring* ring = known_ring_of(tid);
  if (ring != nullptr && ring->state() == RingState::kRunning) return ring;
  if (auto ok = find_rings(); !ok) return fail(std::move(ok.error()));
  ring = known_ring_of(tid);
  if (ring != nullptr) return ring;
  return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", tid),
              fmt::format("no ring of process {} is its", pid_));
}

Result<const Ring*> ProcessFolder::ring_of_new(std::int32_t tid) {
  auto is_unnamed = [](const auto& entry) { return entry.second.thread().tid == 0; };
  Result<const Ring*> ring = ring_of(tid);
  for (int waited_ms = 0; !ring && waited_ms < kMaxNaming_ms; ++waited_ms) {
    if (!std::ranges::any_of(rings_, is_unnamed) || !is_alive()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ring = ring_of(tid);
  }
  return ring;
}

Result<RingBlock> ProcessFolder::open_block(const Ring& ring) const {
  const RingHeader& h = ring.header();
  std::uint64_t at = h.open_block.load(std::memory_order_acquire);
  RingBlock block;
  if (at == h.address + offsetof(RingHeader, own_block)) {
    block = h.own_block;
  } else if (at == h.address + offsetof(RingHeader, spare_block)) {
    block = h.spare_block;
  } else {
    std::uint64_t offset = at - blocks_->address;
    if (offset % sizeof(RingBlock) != 0 || offset / sizeof(RingBlock) >= blocks_->capacity)
      return fail(ErrorCode::kBadInput,
                  fmt::format("cannot tell where thread {} stands", ring.thread().tid),
                  fmt::format("its open block {:#x} is in no table", at));
    block = load<RingBlock>(blocks_file_.bytes(), kLogHeaderSize_bytes + offset);
  }
  block.begin = block_begin(block.begin);
  return block;
}

Result<void> ProcessFolder::read_new_code() {
  ByteSpan bytes = code_file_->bytes().subspan(kLogHeaderSize_bytes);
  std::uint64_t used = code_->used_bytes.load(std::memory_order_acquire);
  if (used > bytes.size()) return fail(bad_file(path_ + "/" + kCodeName, "it is cut short"));
  if (read_bytes_ == used) return {};
  while (read_bytes_ < used) {
    std::uint64_t left = used - read_bytes_;
    const auto* entry = reinterpret_cast<const CodeEntry*>(bytes.data() + read_bytes_);
    if (left < sizeof *entry || left - sizeof *entry < entry->size_bytes)
      return fail(bad_file(path_ + "/" + kCodeName,
                           fmt::format("the entry at {} ends behind the file", read_bytes_)));
    entries_.push_back(entry);
    std::uint64_t size = sizeof *entry + entry->size_bytes;
    read_bytes_ += (size + kCodeAlign_bytes - 1) & ~(kCodeAlign_bytes - 1);
  }
  // First sights hold from the beginning, however late they came.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const CodeEntry* a, const CodeEntry* b) { return a->epoch < b->epoch; });
  image_ = nullptr;
  return {};
}

Result<std::shared_ptr<const CodeImage>> ProcessFolder::code(
    const std::vector<std::uint32_t>& epochs) {
  if (auto ok = read_new_code(); !ok) return fail(std::move(ok.error()));
  if (image_ != nullptr && image_epochs_ == epochs) return image_;
  auto image = std::make_shared<CodeImage>();
  for (const CodeEntry* entry : entries_) {
    auto epoch = std::lower_bound(epochs.begin(), epochs.end(), entry->epoch);
    if (epoch == epochs.end()) break;  // this thread has not met it yet
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(entry + 1);
    auto ok = image->add({entry->address}, ByteSpan(bytes, entry->size_bytes), code_file_,
                         {static_cast<std::uint32_t>(epoch - epochs.begin())});
    if (!ok) return fail(std::move(ok.error()));
  }
  image_ = std::move(image);
  image_epochs_ = epochs;
  return image_;
}

std::string ProcessFolder::former_maps(const std::vector<std::uint32_t>& epochs) const {
  const std::string path = path_ + "/" + kFormerMapsName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Result<Bytes> kept = read_file(path, 2 * FormerMaps::kMaxText_bytes);
  if (!kept) return {};
  return with_epochs(as_text(*kept), [&](std::optional<Epoch>& until, std::string_view) {
    if (!until) return true;
    const auto epoch = std::lower_bound(epochs.begin(), epochs.end(), until->value);
    // Where this thread has not been there since, nothing took its place.
    if (epoch == epochs.end())
      until.reset();
    else
      until->value = static_cast<std::uint32_t>(epoch - epochs.begin());
    return true;
  });
}

}  // namespace tailtrace
