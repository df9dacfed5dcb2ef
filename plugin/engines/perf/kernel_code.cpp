#include "plugin/engines/perf/kernel_code.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "decoder/base/file.h"
#include "decoder/code/maps_line.h"

namespace tailtrace::perf {
namespace {

constexpr std::size_t kMaxKallsyms_bytes = 256 << 20;
constexpr std::size_t kMaxModules_bytes = 1 << 20;
constexpr std::uint64_t kMaxText_bytes = 256 << 20;  // of the kernel, or of all modules

struct KernelRange {
  std::string name;
  std::uint64_t begin = 0, end = 0;
};

const char* const kWhat = "cannot record kernel code";
const char* const kNow = "user code can be recorded without";

tl::unexpected<Error> not_permitted(std::string why, std::string fix) {
  return fail(ErrorCode::kPermission, kWhat, std::move(why), std::move(fix), kNow);
}

// From _stext to _etext. Lines are "ADDRESS TYPE NAME".
Result<KernelRange> kernel_range(const std::string& root) {
  auto bytes = read_file(root + "/proc/kallsyms", kMaxKallsyms_bytes);
  if (!bytes) return not_permitted("/proc/kallsyms: " + bytes.error().why, "run it as root");
  KernelRange range{"kernel", 0, 0};
  for (std::string_view text = as_text(*bytes); !text.empty() && range.end == 0;) {
    std::string_view line = cut_line(text);
    const auto address = parse_hex(cut_word(line));
    cut_word(line);
    const std::string_view name = cut_word(line);
    if (name == "_stext" || (name == "_text" && range.begin == 0))
      range.begin = address.value_or(0);
    else if (name == "_etext")
      range.end = address.value_or(0);
    if (name == "_etext" && range.end == 0) break;
  }
  if (range.begin == 0 || range.end == 0)
    return not_permitted("/proc/kallsyms shows no addresses (kernel.kptr_restrict)",
                         "sudo sysctl kernel.kptr_restrict=1, and run it as root");
  if (range.end <= range.begin || range.end - range.begin > kMaxText_bytes)
    return fail(ErrorCode::kBadInput, kWhat, "/proc/kallsyms has _etext far from _stext", "", kNow);
  return range;
}

// Lines are "NAME SIZE USERS NEEDED STATE ADDRESS". A module that is not shown is not known.
std::vector<KernelRange> module_ranges(const std::string& root) {
  std::vector<KernelRange> modules;
  auto bytes = read_file(root + "/proc/modules", kMaxModules_bytes);
  if (!bytes) return modules;
  std::uint64_t all = 0;
  for (std::string_view text = as_text(*bytes); !text.empty();) {
    std::string_view line = cut_line(text);
    const std::string name(cut_word(line));
    const std::string_view digits = cut_word(line);
    std::uint64_t size = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
    for (int skipped = 0; skipped < 3; ++skipped) cut_word(line);
    std::string_view word = cut_word(line);
    if (word.starts_with("0x")) word.remove_prefix(2);
    const std::uint64_t begin = parse_hex(word).value_or(0);
    all += size;
    if (begin != 0 && size != 0 && begin + size > begin && all <= kMaxText_bytes)
      modules.push_back({name, begin, begin + size});
  }
  return modules;
}

class Kcore {
 public:
  static Result<Kcore> open(const std::string& root) {
    Kcore core;
    core.file_ = UniqueFd(::open((root + "/proc/kcore").c_str(), O_RDONLY | O_CLOEXEC));
    if (!core.file_)
      return not_permitted(
          fmt::format("/proc/kcore: {}", std::strerror(errno)),
          errno == ENOENT ? "a kernel with CONFIG_PROC_KCORE" : "run it as root, without lockdown");
    Elf64_Ehdr header{};
    const bool read = core.read(&header, sizeof header, 0) == sizeof header;
    if (!read || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
      return fail(ErrorCode::kBadInput, kWhat, "/proc/kcore is no ELF file", "", kNow);
    core.segments_.resize(header.e_phnum);
    const std::size_t size = core.segments_.size() * sizeof(Elf64_Phdr);
    if (core.read(core.segments_.data(), size, header.e_phoff) != size)
      return fail(ErrorCode::kBadInput, kWhat, "/proc/kcore is cut short", "", kNow);
    return core;
  }

  // What of a range it has from its beginning on.
  Bytes code_of(const KernelRange& range) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || range.begin < segment.p_vaddr ||
          range.begin - segment.p_vaddr >= segment.p_memsz)
        continue;
      const std::uint64_t skipped = range.begin - segment.p_vaddr;
      Bytes code(std::min(range.end - range.begin, segment.p_memsz - skipped));
      code.resize(read(code.data(), code.size(), segment.p_offset + skipped));
      return code;
    }
    return {};
  }

 private:
  std::size_t read(void* to, std::size_t size, std::uint64_t offset) const {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got = ::pread(file_.get(), static_cast<char*>(to) + done, size - done,
                                  static_cast<off_t>(offset + done));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  UniqueFd file_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

Result<std::vector<KernelSection>> read_kernel_code(const std::string& root) {
  auto core = Kcore::open(root);
  if (!core) return fail(std::move(core.error()));
  auto kernel = kernel_range(root);
  if (!kernel) return fail(std::move(kernel.error()));
  std::vector<KernelRange> ranges = module_ranges(root);
  ranges.insert(ranges.begin(), std::move(*kernel));
  std::vector<KernelSection> sections;
  for (KernelRange& range : ranges) {
    Bytes code = core->code_of(range);
    if (!code.empty()) sections.push_back({std::move(range.name), {range.begin}, std::move(code)});
  }
  if (sections.empty() || sections.front().name != "kernel")
    return fail(ErrorCode::kSystem, kWhat, "/proc/kcore does not have it", "", kNow);
  return sections;
}

Result<CodeImage> image_of(std::vector<KernelSection> sections) {
  CodeImage image;
  for (KernelSection& section : sections)
    if (auto ok = image.add(section.address, std::move(section.code)); !ok)
      return fail(std::move(ok.error()));
  return image;
}

}  // namespace tailtrace::perf
