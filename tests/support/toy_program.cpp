#include "tests/support/toy_program.h"

#include <cassert>

namespace tailtrace {

ToyProgram::ToyProgram(std::uint64_t seed, std::size_t functions, std::size_t blocks)
    : blocks_(blocks) {
  std::mt19937_64 random(seed);
  const std::vector<Bytes> plain = {*from_hex("90"), *from_hex("89d8"), *from_hex("0f1f4000"),
                                    *from_hex("48b8efbeadde00000000")};
  for (std::size_t f = 0; f < functions; ++f) {
    function_starts_.push_back(ops_.size());
    for (std::size_t b = 0; b < blocks; ++b) {
      block_starts_.push_back(ops_.size());
      for (std::size_t n = random() % 6; n != 0; --n) emit(plain[random() % plain.size()]);
      emit_end(random, f, b);
    }
  }
  link();
}

void ToyProgram::emit(const Bytes& bytes, RecordKind kind, std::size_t target) {
  ops_.push_back({kBase + code_.size(), static_cast<std::uint8_t>(bytes.size()), kind, target});
  code_.insert(code_.end(), bytes.begin(), bytes.end());
}

// What a block ends with; direct targets are block or function numbers until link().
void ToyProgram::emit_end(std::mt19937_64& random, std::size_t function, std::size_t block) {
  if (block + 1 == blocks_) return emit(*from_hex("c3"), RecordKind::kReturn);
  std::size_t other = function * blocks_ + random() % blocks_;
  switch (random() % 8) {
    case 0:
      return emit(*from_hex("e900000000"), RecordKind::kJump, other);
    case 1:
      return emit(*from_hex("e800000000"), RecordKind::kCall, random());
    case 2:
      return emit(*from_hex("ffe0"), RecordKind::kIndirectJump, function);
    case 3:
      return emit(*from_hex("0f05"), RecordKind::kSystemCall);
    case 4:
      return emit(*from_hex("c3"), RecordKind::kReturn);
    case 5:
      return emit(*from_hex("ffd0"), RecordKind::kIndirectCall);
    default:
      return emit(*from_hex("0f8400000000"), RecordKind::kConditional, other);
  }
}

void ToyProgram::link() {
  for (Op& op : ops_) {
    if (op.kind == RecordKind::kCall) {
      op.target = function_starts_[op.target % function_starts_.size()];
    } else if (op.kind == RecordKind::kJump || op.kind == RecordKind::kConditional) {
      op.target = block_starts_[op.target];
    } else {
      continue;
    }
    auto rel = static_cast<std::uint32_t>(ops_[op.target].address - (op.address + op.size));
    std::memcpy(code_.data() + (op.address - kBase) + op.size - 4, &rel, 4);
  }
  auto image = std::make_shared<CodeImage>();
  bool added = image->add(kBase, code_).has_value();
  assert(added);
  (void)added;
  image_ = image;
}

ToyRun ToyProgram::run(std::uint64_t seed, std::uint64_t steps, bool async) const {
  std::mt19937_64 random(seed);
  ToyRun run;
  run.snapshot = std::make_shared<ThreadSnapshot>();
  run.snapshot->engine = "toy";
  run.snapshot->complete = true;
  run.snapshot->code = image_;
  std::vector<BranchRecord>& records = run.snapshot->records;
  records.push_back({{}, ops_[0].address, 0, 0, RecordKind::kEnable, 0, 0});
  std::vector<std::size_t> stack;
  std::size_t pc = 0;
  std::uint32_t insns = 0;
  while (run.executed.size() < steps) {
    const Op& op = ops_[pc];
    if (async && random() % 50 == 0) {
      std::size_t to = function_starts_[random() % function_starts_.size()];
      records.push_back(
          {op.address, ops_[to].address, 0, insns, RecordKind::kSignal, kFlagAsync, 0});
      insns = 0;
      pc = to;
      continue;
    }
    run.executed.push_back(op.address);
    ++insns;
    std::size_t to = pc + 1;
    bool taken = op.kind != RecordKind::kNone;
    if (op.kind == RecordKind::kConditional) taken = random() % 2 == 0;
    if (op.kind == RecordKind::kCall || op.kind == RecordKind::kIndirectCall)
      if (stack.size() < 1000) stack.push_back(pc + 1);
    if (op.kind == RecordKind::kReturn) {
      to = stack.empty() ? 0 : stack.back();
      if (!stack.empty()) stack.pop_back();
    } else if (op.kind == RecordKind::kIndirectJump) {
      to = block_starts_[op.target * blocks_ + random() % blocks_];
    } else if (op.kind == RecordKind::kIndirectCall) {
      to = function_starts_[random() % function_starts_.size()];
    } else if (taken && op.kind != RecordKind::kSystemCall) {
      to = op.target;
    }
    if (taken) records.push_back({op.address, ops_[to].address, 0, insns, op.kind, 0, 0});
    if (taken) insns = 0;
    pc = to;
  }
  records.push_back({ops_[pc].address,
                     {},
                     0,
                     insns,
                     RecordKind::kDisable,
                     kFlagAsync | kFlagSynthetic,
                     static_cast<std::uint16_t>(EdgeCause::kDebugger)});
  return run;
}

}  // namespace tailtrace
