// `tailtrace decode` as a user has it: files in, lines out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decoder/pt/packets/packet_writer.h"
#include "plugin/cli/decode_input.h"
#include "plugin/cli/decode_printer.h"
#include "tests/support/command_outcome.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class DecodeCommand : public testing::Test {
 protected:
  DecodeCommand() {
    // 1000: jnz 1004;  1002: jmp rax;  1004: nop;  1005: jmp rax
    write("code", {0x75, 0x02, 0xff, 0xe0, 0x90, 0xff, 0xe0});
    pt::PacketWriter out;
    out.psb();
    out.mode_exec(CodeMode::k64);
    out.fup({0x1000});
    out.psbend();
    out.tnt(true);
    out.tip({0x1000});
    out.tnt(false);
    out.tip({0x1004});
    out.fup({0x1004});
    out.tip_pgd_suppressed();
    write("trace", out.take());
  }

  void write(const std::string& name, const Bytes& bytes) {
    std::ofstream(folder_.file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string trace() const { return folder_.file("trace"); }
  std::string code() const { return folder_.file("code") + "@0x1000"; }

  CommandOutcome run(std::vector<std::string> more, bool with_code = true) {
    std::vector<std::string> args = {"decode", "--pt", trace()};
    if (with_code) args.insert(args.end(), {"--code", code()});
    args.insert(args.end(), more.begin(), more.end());
    return outcome_of(std::move(args));
  }

  TempFolder folder_;
};

constexpr const char* kAddresses =
    "0000000000001000\n"
    "0000000000001004\n"
    "0000000000001005\n"
    "0000000000001000\n"
    "0000000000001002\n"
    "[disabled]\n";

TEST_F(DecodeCommand, PrintsEveryAddressAndEvent) {
  CommandOutcome outcome = run({});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, kAddresses);
}

TEST_F(DecodeCommand, RefusesAThreadOfBytesThatDoNotTellThreadsApart) {
  const CommandOutcome outcome = run({"--tid=7"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("cannot decode one thread of "));
}

TEST_F(DecodeCommand, PrintsTheSameWithIntelsDecoder) {
  EXPECT_EQ(run({"--decoder=libipt"}).out, kAddresses);
}

TEST_F(DecodeCommand, PrintsInstructions) {
  std::string text = run({"--print=instructions"}).out;
  EXPECT_THAT(text, testing::StartsWith("0000000000001000  jnz 0x"));
  EXPECT_THAT(text, HasSubstr("0000000000001004  nop\n"));
  EXPECT_THAT(text, HasSubstr("0000000000001002  jmp rax\n"));
}

TEST_F(DecodeCommand, PrintsEventsOnly) {
  EXPECT_EQ(run({"--print=events"}).out, "[disabled, at: 0000000000001004]\n");
}

// Lines are remembered by the low bits of the address.
TEST_F(DecodeCommand, PlacesFarFromEachOtherHaveLinesOfTheirOwn) {
  constexpr std::uint64_t kNear = 0x1000, kFar = 0x1001000;
  Bytes code(kFar - kNear + 2, 0x90);
  std::ranges::copy(Bytes{0xff, 0xe0}, code.begin());
  std::ranges::copy(Bytes{0xff, 0xe3}, code.end() - 2);
  write("code", code);
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({kNear});
  out.psbend();
  for (Address to : {Address{kFar}, Address{kNear}, Address{kFar}, Address{kNear}}) out.tip(to);
  write("trace", out.take());
  constexpr const char* kThere = "0000000000001000  jmp rax\n0000000001001000  jmp rbx\n";
  EXPECT_EQ(run({"--print=instructions"}).out, std::string(kThere) + kThere + "[end of trace]\n");
}

TEST_F(DecodeCommand, TheSameBytesInOtherModesAreOtherInstructions) {
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1005});
  out.psbend();
  for (CodeMode mode : {CodeMode::k32, CodeMode::k16, CodeMode::k64}) {
    out.tip_pgd({0x1005});
    out.mode_exec(mode);
    out.tip_pge({0x1005});
  }
  out.tip_pgd({0x1005});
  write("trace", out.take());
  std::istringstream lines(run({"--print=instructions"}).out);
  std::vector<std::string> jumps;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0")) jumps.push_back(line.substr(18));
  EXPECT_EQ(jumps, (std::vector<std::string>{"jmp rax", "jmp eax", "jmp ax", "jmp rax"}));
}

TEST_F(DecodeCommand, PrintsRecords) {
  std::string text = run({"--print=records"}).out;
  EXPECT_THAT(text, HasSubstr("0000000000001000 0000000000001004      1 conditional\n"));
  EXPECT_THAT(text, HasSubstr("0000000000001005 0000000000001000      2 indirect-jump\n"));
  EXPECT_THAT(text, HasSubstr("0000000000001002 0000000000001004      2 indirect-jump\n"));
}

TEST_F(DecodeCommand, JsonHoldsTheSameAsTheText) {
  json document = json::parse(run({"--json"}).out);
  EXPECT_EQ(document.at("schema"), "tailtrace.decode/1");
  EXPECT_EQ(document.at("decoder"), "flow");
  std::vector<std::string> addresses;
  for (const json& item : document.at("items"))
    if (item.contains("instruction")) addresses.push_back(item["instruction"]);
  EXPECT_EQ(addresses,
            (std::vector<std::string>{"0x1000", "0x1004", "0x1005", "0x1000", "0x1002"}));
  EXPECT_EQ(document["items"].back().at("event"), "async-disabled");
}

TEST_F(DecodeCommand, JsonLinesAreADocumentEach) {
  std::istringstream lines(run({"--json=lines", "--print=records"}).out);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    json item = json::parse(line);
    EXPECT_EQ(item.at("schema"), "tailtrace.decode/1");
    EXPECT_TRUE(item.contains("kind")) << line;
  }
  EXPECT_GE(count, 4u);
}

TEST_F(DecodeCommand, JsonOfSeveralTracesIsOneDocument) {
  std::ofstream(folder_.file("trace.json")) << R"({"type": "intel-pt",
    "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
    "processes": [{"pid": 1, "modules": [], "threads": [
      {"tid": 1, "iptTrace": "trace"}, {"tid": 2, "iptTrace": "trace"}]}]})";
  CommandOutcome outcome = outcome_of({"decode", "--json", folder_.file("trace.json")});
  json document = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << outcome.out << outcome.err;
  EXPECT_EQ(document.at("schema"), "tailtrace.decodes/1");
  ASSERT_EQ(document.at("traces").size(), 2u);
  EXPECT_EQ(document["traces"][1].at("trace"), "thread 2");
  EXPECT_EQ(document["traces"][1].at("schema"), "tailtrace.decode/1");
}

TEST_F(DecodeCommand, WithoutCodeThereIsAGapAndStrictFails) {
  CommandOutcome outcome = run({}, false);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("error: no memory mapped at this address"));
  outcome = run({"--strict"}, false);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("gap"));
}

TEST_F(DecodeCommand, GoesOnAtAPsbOrWhereItIsTold) {
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1002});
  out.psbend();
  out.tip({0x5000});
  out.tip_pgd_suppressed();
  out.tip_pge({0x1004});
  out.fup({0x1005});
  out.tip_pgd_suppressed();
  write("trace", out.take());
  EXPECT_THAT(run({}).out, testing::Not(HasSubstr("[enabled]")));
  const CommandOutcome outcome = run({"--resume=address"});
  EXPECT_THAT(outcome.out, testing::EndsWith("[enabled]\n0000000000001004\n[disabled]\n"));
  EXPECT_THAT(run({"--resume=address", "--decoder=libipt"}).err, HasSubstr("at PSBs only"));
}

TEST_F(DecodeCommand, AnEmptyTraceIsNothing) {
  write("trace", {});
  CommandOutcome outcome = run({"--strict"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(DecodeCommand, UsageErrorsNameWhatIsWrong) {
  EXPECT_EQ(outcome_of({"decode"}).status, 2);
  EXPECT_EQ(run({"--cpu=zwölf"}).status, 2);
  EXPECT_EQ(run({"--print=nothing"}).status, 2);
  EXPECT_EQ(run({"--mtc-period=15"}).status, 0);
  EXPECT_THAT(run({"--mtc-period=16"}).err, HasSubstr("`16` is no number from 0 to 15"));
  EXPECT_EQ(run({trace()}).status, 2) << "two traces are named";
  CommandOutcome outcome = run({"--code", folder_.file("code")}, false);
  EXPECT_NE(outcome.status, 0) << "raw code needs an address";
  EXPECT_THAT(outcome.err, HasSubstr("code"));
}

TEST_F(DecodeCommand, AFileThatIsNotThereIsNamed) {
  CommandOutcome outcome =
      outcome_of({"decode", "--pt", folder_.file("missing"), "--code", code()});
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("missing"));
  EXPECT_THAT(run({"--code", code() + "x"}, false).err, HasSubstr("FILE@ADDRESS"));
}

TEST_F(DecodeCommand, AFileOfPerfsIsNotReadAsItsPackets) {
  Bytes bytes = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};
  pt::PacketWriter out;
  out.psb();
  Bytes psb = out.take();
  bytes.insert(bytes.end(), psb.begin(), psb.end());
  write("perf.data", bytes);
  const std::string path = folder_.file("perf.data");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"decode", path}, {"packets", path}}) {
    CommandOutcome outcome = outcome_of(args);
    EXPECT_EQ(outcome.status, 5);
    EXPECT_THAT(outcome.err, HasSubstr("tailtrace history " + path));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(DecodeInput, ACpuIsFamilyModelAndStepping) {
  EXPECT_EQ(*parse_cpu("6/85/4"), (pt::Cpu{6, 85, 4}));
  EXPECT_EQ(*parse_cpu("0x6/0x55"), (pt::Cpu{6, 85, 0}));
  EXPECT_EQ(*parse_cpu("none"), pt::Cpu{});
  for (const char* bad : {"", "6", "6/", "6/85/4/1", "6/256/4", "65536/1/1", "six/85"})
    EXPECT_FALSE(parse_cpu(bad)) << bad;
}

// As ptxed tells it. Without a name there is nothing to tell.
TEST_F(DecodeCommand, AProcessorThatIsNotKnownIsTold) {
  const CommandOutcome outcome = run({"--cpu=6/1/2"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, std::string("[0, 0: config error: unknown cpu]\n") + kAddresses);
  EXPECT_THAT(outcome.err, HasSubstr("processor 6/1/2 is not known"));
  for (const char* form : {"--json", "--print=records"}) {
    EXPECT_EQ(run({"--cpu=6/1/2", form}).out, run({form}).out);
    EXPECT_THAT(run({"--cpu=6/1/2", form}).err, HasSubstr("processor 6/1/2 is not known"));
  }
  EXPECT_THAT(outcome_of({"packets", "--cpu=6/1/2", trace()}).err, HasSubstr("6/1/2 is not known"));
  for (const char* known : {"--cpu=6/78", "--cpu=none"}) {
    EXPECT_EQ(run({known}).out, kAddresses);
    EXPECT_EQ(run({known}).err, "");
  }
}

// SKL014: only the filter tells that the first of the two jumps left what is traced.
TEST_F(DecodeCommand, AFilterTellsWhichJumpEndedTheTracing) {
  // 1000: jmp 1004;  1004: jmp far [rax]
  write("jumps", {0xeb, 0x02, 0xf4, 0xf4, 0xff, 0x28});
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1000});
  out.psbend();
  out.tip_pgd_suppressed();
  write("trace", out.take());
  std::vector<std::string> args = {"--code", folder_.file("jumps") + "@0x1000", "--cpu=6/85/4"};
  EXPECT_EQ(run(args, false).out, "0000000000001000\n0000000000001004\n[disabled]\n");
  args.push_back("--filter=0x1000-0x1003");
  EXPECT_EQ(run(args, false).out, "0000000000001000\n[disabled]\n");
  args.push_back("--decoder=libipt");
  EXPECT_EQ(run(args, false).out, "0000000000001000\n[disabled]\n");
}

TEST_F(DecodeCommand, APageOfMemoryMayBeginAsAnElfFileDoes) {
  write("page", {0x7f, 'E', 'L', 'F', 0x75, 0x02, 0xff, 0xe0, 0x90, 0xff, 0xe0});
  CommandOutcome outcome = run({"--code", folder_.file("page") + "@0xffc"}, false);
  EXPECT_EQ(outcome.out, kAddresses) << outcome.err;
  EXPECT_THAT(run({"--code", folder_.file("page")}, false).err, HasSubstr("no ELF file"));
}

TEST(DecodePrinter, DoesNotKeepRecordsOfGaps) {
  for (JsonForm json : {JsonForm::kNone, JsonForm::kLines}) {
    std::FILE* out = std::tmpfile();
    CodeImage code;
    auto printer = make_decode_printer({DecodeItems::kRecords, json, out, "", "flow"}, code);
    for (int i = 0; i < 10'000; ++i) printer->gap({pt::DecodeError::kBadOpcode, {}, 0, 16});
    EXPECT_GT(std::ftell(out), 0);
    printer.reset();
    std::fclose(out);
  }
}

TEST_F(DecodeCommand, JsonTellsFromWhereToWhereAnOverflowWent) {
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1000});
  out.psbend();
  out.ovf();
  out.fup({0x1004});
  write("trace", out.take());
  json event = json::parse(run({"--print=events", "--json"}).out)["items"][0];
  EXPECT_EQ(event["event"], "overflow");
  EXPECT_EQ(event["from"], "0x1000");
  EXPECT_EQ(event["ip"], "0x1004");
}

TEST_F(DecodeCommand, JsonTellsTheNumberThatAnEventIs) {
  pt::PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1000});
  out.psbend();
  out.fup({0x1000});
  out.tip_pgd_suppressed();
  out.ptw(0x12, true, false);
  out.cbr(0x21);
  write("trace", out.take());
  json items = json::parse(run({"--print=events", "--json"}).out)["items"];
  ASSERT_EQ(items.size(), 3u) << items;
  EXPECT_FALSE(items[0].contains("value"));
  EXPECT_EQ(items[1]["value"], "0x12");
  EXPECT_EQ(items[1]["size_bytes"], 8);
  EXPECT_EQ(items[2]["value"], "0x21");
}

TEST_F(DecodeCommand, JsonHasTheFieldsOfAnEventsPacket) {
  pt::PacketWriter out;
  out.psb();
  out.psbend();
  out.mwait(0x10, 1);
  out.exstop(false);
  out.pwre(3, 1, true);
  out.pwrx(3, 4, 0x9);
  out.evd(0, 0x1234);
  out.cfe(1, 14, false);
  out.cfe(2, 0, false);
  write("trace", out.take());
  json items = json::parse(run({"--print=events", "--json"}).out)["items"];
  for (json& item : items) item.erase("text");
  EXPECT_EQ(items, json::parse(R"([
    {"event": "mwait", "hints": "0x10", "extensions": "0x1"},
    {"event": "exstop"},
    {"event": "pwre", "state": 4, "sub_state": 2, "hardware": true},
    {"event": "pwrx", "last_state": 4, "deepest_state": 5, "interrupt": true, "store": false,
     "autonomous": true},
    {"event": "control-flow", "type": 1, "vector": 14, "data": {"cr2": "0x1234"}},
    {"event": "control-flow", "type": 2, "vector": 0}])"));
}

TEST(DecodeInput, FiltersAreRangesOfAddresses) {
  using Kind = pt::AddressFilter::Kind;
  auto filters = parse_filters({"0x1000-0x1fff"}, {"4096-4096", "1-0xffffffffffffffff"});
  ASSERT_TRUE(filters);
  EXPECT_EQ((*filters)[0].kind, Kind::kFilter);
  EXPECT_EQ((*filters)[0].first, Address{0x1000});
  EXPECT_EQ((*filters)[0].last, Address{0x1fff});
  EXPECT_EQ((*filters)[1].kind, Kind::kStop);
  EXPECT_EQ((*filters)[2].last, Address{~0ull});
  EXPECT_EQ((*filters)[3].kind, Kind::kOff);
  for (const char* bad : {"", "-", "1", "1-", "-1", "2-1", "1-2-3", "a-b"})
    EXPECT_FALSE(parse_filters({bad}, {})) << bad;
  EXPECT_FALSE(parse_filters({"1-2", "3-4", "5-6"}, {"7-8", "9-10"}));
}

TEST(DecodeInput, ACodeFileMayHaveAnAddress) {
  EXPECT_EQ(parse_code_file("a@b.bin").path, "a@b.bin");
  EXPECT_FALSE(parse_code_file("a@b.bin").at);
  EXPECT_EQ(parse_code_file("a@b@0x1000").path, "a@b");
  EXPECT_EQ(parse_code_file("a@b@0x1000").at, Address{0x1000});
  EXPECT_EQ(parse_code_file("a:b@0x1000").path, "a:b");
  EXPECT_EQ(parse_code_file("a:1-b@0x1000").path, "a:1-b");
}

// As memory that was dumped, of which only some is code.
TEST_F(DecodeCommand, CodeMayBeAPieceOfAFile) {
  write("dump", {0, 0, 0, 0, 0x75, 0x02, 0xff, 0xe0, 0x90, 0xff, 0xe0, 0, 0});
  for (const char* piece : {":4-11@0x1000", ":0x4-0xb@0x1000", ":4@0x1000", ":0@0xffc"})
    EXPECT_EQ(run({"--code", folder_.file("dump") + piece}, false).out, kAddresses) << piece;
  EXPECT_THAT(run({"--code", folder_.file("dump") + ":4-6@0x1000"}, false).out,
              HasSubstr("no memory mapped"));
  write("dump:4", {0x75, 0x02, 0xff, 0xe0, 0x90, 0xff, 0xe0});
  EXPECT_EQ(run({"--code", folder_.file("dump:4") + "@0x1000"}, false).out, kAddresses);
  for (const char* piece : {":4-14@0x1000", ":4-4@0x1000", ":13@0x1000", ":6-4@0x1000"}) {
    const CommandOutcome outcome = run({"--code", folder_.file("dump") + piece}, false);
    EXPECT_EQ(outcome.status, 2) << piece;
    EXPECT_THAT(outcome.err, HasSubstr("it is 0xd bytes long")) << piece;
  }
}

TEST_F(DecodeCommand, TheTraceMayBeNamedBehindWhatMayComeSeveralTimes) {
  EXPECT_EQ(outcome_of({"decode", "--code", code(), trace()}).out, kAddresses);
  EXPECT_EQ(outcome_of({"decode", "--code", code(), "--filter=1-2", trace()}).out, kAddresses);
  EXPECT_EQ(outcome_of({"decode", "--code", code(), "--stop=1-2", trace()}).out, kAddresses);
}

}  // namespace
}  // namespace tailtrace
