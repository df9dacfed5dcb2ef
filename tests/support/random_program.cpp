#include "tests/support/random_program.h"

#include <cassert>

namespace tailtrace {

// What a block ends with, as bytes; a direct branch's displacement comes behind its opcode.
struct BlockEnd {
  InstructionClass kind;
  const char* opcode;
  std::uint8_t displacement_bytes;
  std::uint8_t more_bytes;  // zeros behind it
};

namespace {

const BlockEnd kEnds[] = {
    {InstructionClass::kConditional, "74", 1, 0},
    {InstructionClass::kConditional, "0f8f", 4, 0},
    {InstructionClass::kConditional, "e3", 1, 0},
    {InstructionClass::kConditional, "e2", 1, 0},
    {InstructionClass::kConditional, "0f82", 4, 0},
    {InstructionClass::kJump, "eb", 1, 0},
    {InstructionClass::kJump, "e9", 4, 0},
    {InstructionClass::kCall, "e8", 4, 0},
    {InstructionClass::kIndirectJump, "ffe0", 0, 0},
    {InstructionClass::kIndirectJump, "ff25", 0, 4},
    {InstructionClass::kIndirectCall, "ffd0", 0, 0},
    {InstructionClass::kIndirectCall, "ff15", 0, 4},
    {InstructionClass::kReturn, "c3", 0, 0},
    {InstructionClass::kReturn, "c2", 0, 2},
    {InstructionClass::kReturn, "f3c3", 0, 0},
    {InstructionClass::kSystemCall, "0f05", 0, 0},
    {InstructionClass::kSystemCall, "cc", 0, 0},
    {InstructionClass::kSystemCall, "cd80", 0, 0},
    {InstructionClass::kFarReturn, "48cf", 0, 0},
    {InstructionClass::kFarReturn, "cb", 0, 0},
};

const char* const kPlain[] = {"90",       "6690",       "4889e5",           "0f1f00",
                              "f3a4",     "31c0",       "c5f877",           "480fafc3",
                              "8b442408", "f0480fb10f", "0f1f840000000000", "48b88877665544332211"};

constexpr std::uint64_t kRegionSize_bytes = 0x4000;

}  // namespace

struct BlockPlan {
  Address begin;
  std::vector<Bytes> plain;
  const BlockEnd* end = nullptr;
  bool calls_next = false;  // CALL with a zero displacement
};

struct RandomProgram::Region {
  Address begin;
  std::vector<BlockPlan> blocks;
};

namespace {

BlockPlan plan_block(Random& random, bool last) {
  BlockPlan block;
  for (std::uint64_t n = random.below(6); n != 0; --n)
    block.plain.push_back(*from_hex(kPlain[random.below(std::size(kPlain))]));
  do {
    block.end = &kEnds[random.below(std::size(kEnds))];
  } while (last && block.end->kind != InstructionClass::kIndirectJump &&
           block.end->kind != InstructionClass::kReturn);
  block.calls_next = block.end->kind == InstructionClass::kCall && random.one_in(4);
  return block;
}

std::uint64_t size_of(const BlockPlan& block) {
  std::uint64_t size = block.end->displacement_bytes + block.end->more_bytes;
  size += from_hex(block.end->opcode)->size();
  for (const Bytes& insn : block.plain) size += insn.size();
  return size;
}

// A block that a branch with this displacement can reach from `next`.
Address pick_target(Random& random, const std::vector<Address>& blocks, Address next,
                    std::uint8_t displacement_bytes) {
  for (int tries = 0; tries < 1000; ++tries) {
    Address to = blocks[random.below(blocks.size())];
    auto distance = static_cast<std::int64_t>(to.value - next.value);
    std::int64_t reach = displacement_bytes == 1 ? 127 : 0x7fffffff;
    if (distance >= -reach && distance <= reach) return to;
  }
  return next - 2u;  // unreachable in a layout with a block near every end
}

}  // namespace

RandomProgram::RandomProgram(std::uint64_t seed, unsigned blocks)
    : image_(std::make_shared<CodeImage>()) {
  Random random(seed);
  const std::uint64_t begins[] = {0x400000, 0x40a000, 0x7f0012340000, 0x7f0112340000,
                                  0xffffffff81000000};
  std::vector<Region> regions;
  for (std::uint64_t begin : begins) {
    Region region{{begin + random.below(64)}, {}};
    Address at = region.begin;
    for (unsigned i = 0; i < blocks; ++i) {
      bool last = i + 1 == blocks || at - region.begin > kRegionSize_bytes;
      BlockPlan block = plan_block(random, last);
      block.begin = at;
      at = at + size_of(block);
      blocks_.push_back(block.begin);
      region.blocks.push_back(std::move(block));
      if (last) break;
    }
    regions.push_back(std::move(region));
  }
  for (const Region& region : regions) write(random, region);
}

void RandomProgram::write(Random& random, const Region& region) {
  Bytes bytes;
  auto put = [&](const Bytes& insn, InstructionClass kind, Address target) {
    code_[(region.begin + bytes.size()).value] = {kind, static_cast<std::uint8_t>(insn.size()),
                                                  target};
    bytes.insert(bytes.end(), insn.begin(), insn.end());
  };
  for (const BlockPlan& block : region.blocks) {
    for (const Bytes& insn : block.plain)
      put(insn, insn == *from_hex("f3a4") ? InstructionClass::kRepString : InstructionClass::kOther,
          {});
    Bytes insn = *from_hex(block.end->opcode);
    unsigned displacement_bytes = block.end->displacement_bytes;
    insn.resize(insn.size() + displacement_bytes + block.end->more_bytes);
    Address next = region.begin + bytes.size() + insn.size();
    Address target;
    if (displacement_bytes != 0) {
      target = block.calls_next ? next
                                : pick_target(random, blocks_, next, block.end->displacement_bytes);
      std::uint64_t displacement = target - next;
      std::memcpy(insn.data() + insn.size() - displacement_bytes, &displacement,
                  displacement_bytes);
    }
    put(insn, block.end->kind, target);
  }
  bool added = image_->add(region.begin, std::move(bytes)).has_value();
  assert(added);
  (void)added;
}

namespace {

class Walker {
 public:
  Walker(const RandomProgram& program, std::uint64_t seed, const WalkOptions& options)
      : program_(program), random_(seed), options_(options) {}

  Walk walk() {
    walk_.snapshot.code = program_.image();
    walk_.snapshot.engine = "random";
    walk_.snapshot.complete = true;
    at_ = any_block();
    note({}, at_, RecordKind::kEnable, 0);
    for (std::uint64_t i = 0; i < options_.branches; ++i) {
      if (random_.one_in(8)) happen();
      step_to_branch();
    }
    disturb_run();
    note(at_, {}, RecordKind::kDisable, kFlagAsync | kFlagSynthetic);
    return std::move(walk_);
  }

 private:
  Address any_block() { return program_.blocks()[random_.below(program_.blocks().size())]; }
  const ProgramInstruction& insn() const { return program_.instructions().at(at_.value); }

  void note(Address from, Address to, RecordKind kind, std::uint8_t flags) {
    BranchRecord record{from, to, 0, insns_, kind, flags, 0};
    if (options_.times) record.time = time_ += random_.below(50);
    walk_.snapshot.records.push_back(record);
    insns_ = 0;
    at_ = to;
  }

  void execute() {
    walk_.executed.push_back(at_);
    ++insns_;
  }

  // Goes on inside the straight run, so that what happens next happens anywhere in it.
  void disturb_run() {
    for (std::uint64_t n = random_.below(8); n != 0; --n) {
      InstructionClass kind = insn().kind;
      if (kind != InstructionClass::kOther && kind != InstructionClass::kConditional) return;
      execute();
      at_ = at_ + insn().size_bytes;
    }
  }

  void happen();
  void happen_asynchronously();
  void step_to_branch();
  void take_branch(const ProgramInstruction& branch, Address next);
  Address return_target();

  const RandomProgram& program_;
  Random random_;
  WalkOptions options_;
  Walk walk_;
  Address at_;
  std::uint32_t insns_ = 0;
  std::uint64_t time_ = 1000;
  std::vector<Address> calls_;
};

void Walker::happen() {
  disturb_run();
  std::uint64_t what = random_.below(10);
  if (what < 5 && options_.asynchronous) {
    happen_asynchronously();
  } else if (what == 5 && options_.edges) {
    note(at_, {}, RecordKind::kDisable, kFlagAsync);
    note({}, any_block(), RecordKind::kEnable, 0);
  } else if (what == 6 && options_.losses) {
    note(at_, any_block(), RecordKind::kOverflow, kFlagAsync);
  } else if (what == 7 && options_.losses) {
    note(at_, random_.one_in(4) ? at_ : any_block(), RecordKind::kGap, kFlagAsync);
  } else if (what == 8 && options_.transactions) {
    note(at_, at_, RecordKind::kTransactionBegin, kFlagAsync);
    step_to_branch();
    disturb_run();
    if (random_.one_in(2))
      note(at_, at_, RecordKind::kTransactionCommit, kFlagAsync);
    else
      note(at_, any_block(), RecordKind::kTransactionAbort, kFlagAsync | kFlagAbort);
  }
}

void Walker::happen_asynchronously() {
  switch (random_.below(5)) {
    case 0:
      return note(at_, any_block(), RecordKind::kSignal, kFlagAsync);
    case 1:
      return note(at_, at_, RecordKind::kInterrupt, kFlagAsync);
    case 2:
      return note(at_, any_block(), RecordKind::kDiscontinuity, kFlagAsync);
    case 3:
      return note(at_, at_, RecordKind::kMarker, kFlagAsync);
    default:
      return note(at_, any_block(), RecordKind::kException, kFlagAsync);
  }
}

Address Walker::return_target() {
  if (calls_.empty() || (options_.odd_returns && random_.one_in(8))) return any_block();
  Address to = calls_.back();
  calls_.pop_back();
  return to;
}

void Walker::step_to_branch() {
  for (;;) {
    const ProgramInstruction& here = insn();
    Address next = at_ + here.size_bytes;
    execute();
    bool falls_through = here.kind == InstructionClass::kOther ||
                         here.kind == InstructionClass::kRepString ||
                         (here.kind == InstructionClass::kConditional && random_.one_in(2));
    if (!falls_through) return take_branch(here, next);
    at_ = next;
  }
}

void Walker::take_branch(const ProgramInstruction& branch, Address next) {
  switch (branch.kind) {
    case InstructionClass::kConditional:
      return note(at_, branch.target, RecordKind::kConditional, 0);
    case InstructionClass::kJump:
      return note(at_, branch.target, RecordKind::kJump, 0);
    case InstructionClass::kCall:
      calls_.push_back(next);
      return note(at_, branch.target, RecordKind::kCall, 0);
    case InstructionClass::kIndirectCall:
      calls_.push_back(next);
      return note(at_, any_block(), RecordKind::kIndirectCall, 0);
    case InstructionClass::kIndirectJump:
      return note(at_, any_block(), RecordKind::kIndirectJump, 0);
    case InstructionClass::kReturn:
      return note(at_, return_target(), RecordKind::kReturn, 0);
    case InstructionClass::kFarReturn:
      return note(at_, any_block(), RecordKind::kFarReturn, 0);
    default:
      return note(at_, random_.one_in(8) ? any_block() : next, RecordKind::kSystemCall, 0);
  }
}

}  // namespace

Walk random_walk(const RandomProgram& program, std::uint64_t seed, const WalkOptions& options) {
  return Walker(program, seed, options).walk();
}

}  // namespace tailtrace
