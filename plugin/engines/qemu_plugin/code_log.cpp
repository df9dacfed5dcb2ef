#include "plugin/engines/qemu_plugin/code_log.h"

#include <algorithm>
#include <cstring>

namespace tailtrace {

bool CodeLog::create(const std::string& path, std::size_t capacity_bytes) {
  capacity_bytes &= ~(kCodeAlign_bytes - 1);
  if (!file_.create(path, kLogHeaderSize_bytes + capacity_bytes, kLogHeaderSize_bytes))
    return false;
  std::memcpy(header().magic, kCodeMagic, sizeof kCodeMagic);
  header().version = kCodeVersion;
  header().capacity_bytes = capacity_bytes;
  return true;
}

bool CodeLog::move_to(const std::string& path) {
  return file_.move_to(path, kLogHeaderSize_bytes + header().used_bytes.load());
}

bool CodeLog::Part::is_news() const {
  for (std::size_t i = 0; page->blank && i < size; ++i)
    if (!page->executed[offset() + i]) return true;
  return std::memcmp(page->bytes.data() + offset(), bytes, size) != 0;
}

bool CodeLog::Part::is_change() const {
  for (std::size_t i = 0; i < size; ++i)
    if (page->executed[offset() + i] && page->bytes[offset() + i] != bytes[i]) return true;
  return false;
}

std::optional<std::uint32_t> CodeLog::see(std::uint64_t pc, const std::uint8_t* bytes,
                                          std::size_t size, const std::uint8_t* memory) {
  // A piece of code lies in two pages at most: qemu ends it where a page ends.
  Part parts[2];
  std::size_t count = 0;
  for (std::size_t done = 0; done < size && count < 2;) {
    std::uint64_t at = pc + done;
    std::size_t n = std::min<std::size_t>(size - done, kPage_bytes - at % kPage_bytes);
    Page* page = page_of(at, memory == nullptr ? nullptr : memory + done);
    if (page == nullptr) return std::nullopt;
    parts[count++] = {at, bytes + done, n, page};
    done += n;
  }
  bool change = false;
  for (std::size_t i = 0; i < count; ++i) change |= parts[i].is_news() && parts[i].is_change();
  if (change) ++epoch_;
  std::uint32_t newest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (parts[i].is_news() && !write(parts[i], change ? epoch_ : parts[i].page->since))
      return std::nullopt;
    newest = std::max(newest, parts[i].page->epoch);
    for (std::size_t k = 0; k < parts[i].size; ++k)
      parts[i].page->executed.set(parts[i].offset() + k);
  }
  return newest;
}

bool CodeLog::was_executed(FormerMaps::Range range) const {
  const std::uint64_t first = range.begin.value / kPage_bytes;
  if (range.end <= range.begin) return false;
  const std::uint64_t last = (range.end.value - 1) / kPage_bytes;
  if (last - first >= pages_.size())
    return std::any_of(pages_.begin(), pages_.end(),
                       [&](const auto& page) { return first <= page.first && page.first <= last; });
  std::uint64_t number = first;
  while (number <= last && pages_.count(number) == 0) ++number;
  return number <= last;
}

void CodeLog::begin_epoch(const std::vector<FormerMaps::Range>& ranges) {
  ++epoch_;
  for (const FormerMaps::Range& range : ranges)
    for (std::uint64_t number = range.begin.value / kPage_bytes;
         number * kPage_bytes < range.end.value; ++number) {
      pages_.erase(number);
      since_[number] = epoch_;
    }
}

CodeLog::Page* CodeLog::page_of(std::uint64_t address, const std::uint8_t* memory) {
  std::uint64_t number = address / kPage_bytes;
  auto found = pages_.find(number);
  if (found != pages_.end()) return found->second.get();
  auto page = std::make_unique<Page>();
  if (auto since = since_.find(number); since != since_.end())
    page->since = page->epoch = since->second;
  if (memory != nullptr) {
    std::memcpy(page->bytes.data(), memory - address % kPage_bytes, kPage_bytes);
    if (!append(number * kPage_bytes, page->bytes.data(), kPage_bytes, page->since)) return nullptr;
  } else {
    page->bytes.fill(0);
    page->blank = true;
  }
  return pages_.emplace(number, std::move(page)).first->second.get();
}

bool CodeLog::write(const Part& part, std::uint32_t epoch) {
  if (!append(part.address, part.bytes, part.size, epoch)) return false;
  std::memcpy(part.page->bytes.data() + part.offset(), part.bytes, part.size);
  part.page->epoch = std::max(part.page->epoch, epoch);
  return true;
}

bool CodeLog::append(std::uint64_t address, const std::uint8_t* bytes, std::size_t size,
                     std::uint32_t epoch) {
  std::uint64_t used = header().used_bytes.load(std::memory_order_relaxed);
  std::size_t padded = (size + kCodeAlign_bytes - 1) & ~(kCodeAlign_bytes - 1);
  std::uint64_t end = used + sizeof(CodeEntry) + padded;
  if (end > header().capacity_bytes || !file_.grow_to(kLogHeaderSize_bytes + end)) return false;
  std::uint8_t* at = file_.data() + kLogHeaderSize_bytes + used;
  CodeEntry entry{address, static_cast<std::uint32_t>(size), epoch};
  std::memcpy(at, &entry, sizeof entry);
  std::memcpy(at + sizeof entry, bytes, size);
  header().used_bytes.store(end, std::memory_order_release);
  return true;
}

}  // namespace tailtrace
