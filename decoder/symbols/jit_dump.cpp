#include "decoder/symbols/jit_dump.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

constexpr std::uint32_t kMagic = 0x4a695444, kSwappedMagic = 0x4454694a;
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kArchitecturesClock = 1;  // a flag

struct FileHeader {
  std::uint32_t magic, version, size_bytes, machine, padding, pid;
  std::uint64_t time, flags;
};
static_assert(sizeof(FileHeader) == 40);

enum class Kind : std::uint32_t { kLoad = 0, kMove = 1, kLines = 2, kClose = 3, kUnwinding = 4 };

struct RecordHeader {
  Kind kind;
  std::uint32_t size_bytes;
  std::uint64_t time;
};
static_assert(sizeof(RecordHeader) == 16);

struct LoadBody {
  std::uint32_t pid, tid;
  std::uint64_t mapped_address, address, size_bytes, index;
};
static_assert(sizeof(LoadBody) == 40);

struct MoveBody {
  std::uint32_t pid, tid;
  std::uint64_t mapped_address, old_address, new_address, size_bytes, index;
};
static_assert(sizeof(MoveBody) == 48);

class Parser {
 public:
  Parser(ByteSpan bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<JitDump> parse() {
    auto header = read_header();
    if (!header) return fail(std::move(header.error()));
    dump_.pid = header->pid;
    dump_.is_tsc = (header->flags & kArchitecturesClock) != 0;
    for (std::size_t at = header->size_bytes; at < bytes_.size();) {
      const std::size_t size_bytes = read_record(bytes_.subspan(at));
      if (size_bytes == 0) break;
      at += size_bytes;
    }
    add_problems();
    return std::move(dump_);
  }

 private:
  tl::unexpected<Error> refuse(std::string why) const {
    return fail(ErrorCode::kBadInput, "cannot read the jitdump " + name_, std::move(why));
  }

  Result<FileHeader> read_header() const {
    if (bytes_.size() < sizeof(FileHeader)) return refuse("it is cut short");
    auto header = load<FileHeader>(bytes_);
    if (header.magic == kSwappedMagic) return refuse("it is of a big-endian processor");
    if (header.magic != kMagic) return refuse("it does not begin as one");
    if (header.version != kVersion)
      return refuse(fmt::format("it is of version {}, and {} is known", header.version, kVersion));
    if (header.machine != EM_X86_64)
      return refuse(fmt::format("it is of the ELF machine {}, not of x86-64", header.machine));
    if (header.size_bytes < sizeof header) return refuse("its header is too short");
    return header;
  }

  // Returns how long the record is; 0: nothing follows that could be read.
  std::size_t read_record(ByteSpan rest) {
    if (rest.size() < sizeof(RecordHeader)) return end_early();
    const auto header = load<RecordHeader>(rest);
    if (header.size_bytes < sizeof header || header.size_bytes > rest.size()) return end_early();
    const ByteSpan body = rest.first(header.size_bytes).subspan(sizeof header);
    if (header.kind == Kind::kClose) return 0;
    if (header.kind == Kind::kLoad && !take_load(header.time, body)) ++bad_;
    if (header.kind == Kind::kMove && !take_move(header.time, body)) ++bad_;
    return header.size_bytes;
  }

  std::size_t end_early() {
    cut_short_ = true;
    return 0;
  }

  bool take_load(std::uint64_t time, ByteSpan body) {
    if (body.size() < sizeof(LoadBody)) return false;
    const auto fields = load<LoadBody>(body);
    body = body.subspan(sizeof fields);
    const std::string_view text = as_text(body);
    const std::size_t end = text.find('\0');
    if (end == text.npos) return false;
    body = body.subspan(end + 1);
    if (fields.size_bytes > body.size()) return false;
    if (fields.size_bytes == 0) return true;  // a function without code is none for us
    JitLoad made{time,
                 {fields.address},
                 fields.size_bytes,
                 text.substr(0, end),
                 body.first(fields.size_bytes)};
    if (!add(made)) return false;
    by_index_[fields.index] = dump_.loads.size() - 1;
    return true;
  }

  bool take_move(std::uint64_t time, ByteSpan body) {
    if (body.size() < sizeof(MoveBody)) return false;
    const auto fields = load<MoveBody>(body);
    auto moved = by_index_.find(fields.index);
    if (moved == by_index_.end()) return false;
    JitLoad made = dump_.loads[moved->second];
    if (made.address != Address{fields.old_address} || made.size_bytes != fields.size_bytes)
      return false;
    made.time = time;
    made.address = {fields.new_address};
    if (!add(made)) return false;
    moved->second = dump_.loads.size() - 1;
    return true;
  }

  bool add(const JitLoad& made) {
    const bool fits = made.address + made.size_bytes > made.address;
    if (!fits || dump_.loads.size() >= JitDump::kMaxLoads) return false;
    dump_.loads.push_back(made);
    return true;
  }

  void add_problems() {
    if (bad_ != 0)
      dump_.problems.push_back({ErrorCode::kBadInput,
                                fmt::format("cannot read {} record(s) of {}", bad_, name_),
                                "they are too short, lead outside, or move what is not known", "",
                                "the functions of all others are known"});
    if (cut_short_)
      dump_.problems.push_back({ErrorCode::kBadInput, "cannot read all of " + name_,
                                "it is cut short: the program may be writing it still", "",
                                "what is before that is known"});
  }

  ByteSpan bytes_;
  const std::string& name_;
  JitDump dump_;
  std::unordered_map<std::uint64_t, std::size_t> by_index_;  // the newest load
  std::size_t bad_ = 0;
  bool cut_short_ = false;
};

}  // namespace

Result<JitDump> parse_jit_dump(ByteSpan bytes, const std::string& name) {
  return Parser(bytes, name).parse();
}

bool is_jit_dump_name(std::string_view path) {
  constexpr std::string_view kBegin = kJitDumpBegin, kEnd = ".dump";
  std::string_view name = base_name(path);
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  if (name.size() <= kBegin.size() + kEnd.size()) return false;
  name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace tailtrace
