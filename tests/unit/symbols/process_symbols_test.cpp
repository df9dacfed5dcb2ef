#include "decoder/symbols/process_symbols.h"

#include <gtest/gtest.h>

#include "decoder/symbols/demangle.h"
#include "decoder/symbols/missing_place.h"

namespace tailtrace {

// A function with a name of its own, outside of any unnamed namespace.
__attribute__((noinline)) int a_function_to_be_found(int n) { return n + 1; }

namespace {

std::vector<Mapping> own_mappings() {
  auto bytes = read_file("/proc/self/maps", 1 << 24);
  EXPECT_TRUE(bytes);
  return parse_maps(as_text(*bytes));
}

template <class F>
Address address_of(F* function) {
  return {reinterpret_cast<std::uint64_t>(function)};
}

TEST(ProcessSymbols, FindThisProgramsOwnFunctions) {
  ProcessSymbols symbols(own_mappings());
  Address here = address_of(&a_function_to_be_found);
  const Function& function = symbols.function_at(here);
  EXPECT_EQ(function.name, "tailtrace::a_function_to_be_found(int)");
  EXPECT_EQ(function.entry, here);
  EXPECT_TRUE(function.module.ends_with("/unit_tests")) << function.module;
  EXPECT_EQ(&symbols.function_at(here), &function);
  auto line = symbols.line_at(here);
  ASSERT_TRUE(line);
  EXPECT_EQ(base_name(line->file), "process_symbols_test.cpp");
  EXPECT_EQ(line->line, 11u);
  EXPECT_EQ(place_text(symbols, here + 1), "tailtrace::a_function_to_be_found(int)+0x1");
  EXPECT_TRUE(symbols.problems().empty());
}

TEST(ProcessSymbols, FindFunctionsOfLibraries) {
  ProcessSymbols symbols(own_mappings());
  const Function& function = symbols.function_at(address_of(&::getenv));
  // The C library has several names for it.
  EXPECT_NE(function.symbol_name.find("getenv"), std::string::npos) << function.symbol_name;
  EXPECT_NE(function.module.find("libc"), std::string::npos);
}

TEST(ProcessSymbols, KnowNothingWhereNothingIsMapped) {
  ProcessSymbols symbols(
      {{{0x1000}, {0x2000}, 0, true, "[vdso]"}, {{0x5000}, {0x6000}, 0, true, "/no/such/file"}});
  for (std::uint64_t at : {std::uint64_t{0}, std::uint64_t{0x3000}, ~std::uint64_t{1}}) {
    const Function& function = symbols.function_at({at});
    EXPECT_EQ(function.name, "");
    EXPECT_EQ(function.module, "");
    EXPECT_LE(function.begin.value, at);
    EXPECT_GT(function.end.value, at);
  }
  EXPECT_EQ(symbols.function_at({0x1800}).module, "[vdso]");
  EXPECT_TRUE(symbols.problems().empty());
  EXPECT_EQ(symbols.function_at({0x5800}).module, "/no/such/file");
  EXPECT_FALSE(symbols.line_at({0x5800}));
  ASSERT_EQ(symbols.problems().size(), 1u);
  EXPECT_NE(symbols.problems()[0].what.find("/no/such/file"), std::string::npos);
}

TEST(ProcessSymbols, AreNotLookedThroughForLongerThanIsWanted) {
  ProcessSymbols symbols(own_mappings());
  int looked_at = 0;
  const auto missing = missing_place(*parse_location("no_such_function"), true, symbols,
                                     [&] { return ++looked_at < 9; });
  EXPECT_FALSE(missing);
  EXPECT_EQ(looked_at, 9);
}

TEST(Mappings, AreReadAsTheKernelWritesThem) {
  std::vector<Mapping> mappings = parse_maps(
      "7f0000002000-7f0000003000 r--p 00001000 fe:01 12  /lib/with blanks.so\n"
      "55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:01 1234                       /usr/bin/x\n"
      "7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0\n"
      "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]\n"
      "55d0c0a20000-55d0c0a22000 r-xp 00000000 fe:01 99  /overlaps\n"
      "7f0000004000-7f0000005000 r-xp 00000000 fe:01 12  /lib/gone.so (deleted)\n"
      "nonsense\n-\n5-4 r-xp 0 0 0 /backwards\n"
      "zz-zz r-xp 0 0 0 /no/number");
  ASSERT_EQ(mappings.size(), 4u);
  EXPECT_EQ(mappings[0], (Mapping{{0x55d0c0a00000}, {0x55d0c0a21000}, 0x2000, true, "/usr/bin/x"}));
  EXPECT_EQ(mappings[1].path, "/lib/with blanks.so");
  EXPECT_FALSE(mappings[1].executable);
  EXPECT_FALSE(mappings[2].has_file());
  EXPECT_EQ(mappings[3].path, "[vdso]");
}

// The type that a function returns is in the names of some functions only.
TEST(Demangle, LeavesOutWhatAFunctionReturns) {
  EXPECT_EQ(demangle("_ZN6sample5twiceIiEET_S1_"), "sample::twice<int>(int)");
  EXPECT_EQ(demangle("_ZSteqIcSaIcEEbRKSt6vectorIT_T0_ES6_"),
            "std::operator==<char, std::allocator<char> >(std::vector<char, std::allocator<char> > "
            "const&, std::vector<char, std::allocator<char> > const&)");
  EXPECT_EQ(demangle("_ZN12_GLOBAL__N_11fIiEEvT_"), "(anonymous namespace)::f<int>(int)");
  EXPECT_EQ(demangle("_ZN12_GLOBAL__N_11gEi"), "(anonymous namespace)::g(int)");
  EXPECT_EQ(demangle("_ZnwmPv"), "operator new(unsigned long, void*)");
  EXPECT_EQ(demangle("_ZNK3FoocviEv"), "Foo::operator int() const");
  EXPECT_EQ(demangle("_ZN3FoolsEi"), "Foo::operator<<(int)");
  EXPECT_EQ(demangle("_ZZ4mainENKUliE_clEi"), "main::{lambda(int)#1}::operator()(int) const");
  EXPECT_EQ(demangle("_Znwm@plt"), "operator new(unsigned long)@plt");
  EXPECT_EQ(demangle("_Z1fIiEDcT_"), "f<int>(int)");  // decltype(auto)
  EXPECT_EQ(demangle("_ZTV3Foo"), "vtable for Foo");
  EXPECT_EQ(demangle("_ZThn16_N3Foo3barEi"), "non-virtual thunk to Foo::bar(int)");
  EXPECT_EQ(demangle("_ZGVZ3foovE1a"), "guard variable for foo()::a");
  EXPECT_EQ(demangle("_ZN3FooC1Ev"), "Foo::Foo()");
}

// The names are gfortran's, the texts GDB's.
TEST(Demangle, KnowsModulesOfFortran) {
  EXPECT_EQ(demangle("__shapes_MOD_fact"), "shapes::fact");
  EXPECT_EQ(demangle("__my_shapes2_MOD_area_of_all"), "my_shapes2::area_of_all");
  EXPECT_EQ(demangle("__shapes_MOD_fact@plt"), "shapes::fact@plt");
  for (const char* other : {"__MOD_fact", "__shapes_MOD_", "shapes_MOD_fact", "__Shapes_MOD_fact",
                            "__shapes_MOD___vtab_shapes_Shape", "__shapes_mod_fact"})
    EXPECT_EQ(demangle(other), other);
}

TEST(Demangle, GivesUpOnNamesThatWouldUnfoldIntoSomethingEnormous) {
  EXPECT_EQ(demangle("_ZN6Worker4stepEi"), "Worker::step(int)");
  EXPECT_EQ(demangle("main"), "main");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
  // f(A<int>, A<A<int>, A<int>>, ...): each parameter is twice as long as the one before.
  auto doubling = [](int parameters) {
    std::string name = "_Z1f1AIiE";
    for (int i = 0; i < parameters; ++i) {
      std::string before = std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] + "_";
      name += "S_I" + before + before + "E";
    }
    return name;
  };
  EXPECT_EQ(demangle(doubling(1)), "f(A<int>, A<A<int>, A<int> >)");
  EXPECT_GT(demangle(doubling(8)).size(), 2000u);
  EXPECT_EQ(demangle(doubling(36)), doubling(36));
}

}  // namespace
}  // namespace tailtrace
