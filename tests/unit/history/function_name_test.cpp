#include "decoder/history/function_name.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

Function named(std::string name, std::string symbol = "", std::string debug = "") {
  Function function;
  function.name = std::move(name);
  function.symbol_name = std::move(symbol);
  function.debug_name = std::move(debug);
  return function;
}

TEST(FunctionName, FunctionsHaveTheNamesThatPeopleKnowThemBy) {
  Function step = named("Worker::step(int)", "_ZN6Worker4stepEi");
  for (const char* name : {"Worker::step", "Worker::step(int)", "_ZN6Worker4stepEi"})
    EXPECT_TRUE(has_name(step, name)) << name;
  for (const char* name : {"", "step", "Worker", "Worker::step(", "Worker::step(char)"})
    EXPECT_FALSE(has_name(step, name)) << name;
  EXPECT_TRUE(has_name(named("(anonymous namespace)::f(int)"), "(anonymous namespace)::f"));
  EXPECT_TRUE(has_name(named("A::(anonymous namespace)::f()"), "A::(anonymous namespace)::f"));
  EXPECT_TRUE(has_name(named("F::operator()(int) const"), "F::operator()"));
  EXPECT_FALSE(has_name(named("F::operator()(int) const"), "F::operator"));
  EXPECT_FALSE(has_name(named(""), ""));
}

// tests/cli/places_test.py has names from a program, and what GDB makes of them.
TEST(FunctionName, MayLackScopesArgumentsAndTags) {
  auto is = [](const char* wanted, const char* name) { return is_called(named(name), wanted); };
  EXPECT_TRUE(is("fmt", "<str as core::fmt::Debug>::fmt"));
  EXPECT_TRUE(is("Debug::fmt", "<T>::Debug<int, std::less<int>>::fmt"));
  EXPECT_TRUE(is("operator<<", "std::operator<< <std::char_traits<char> >(std::ostream&)"));
  EXPECT_TRUE(is("operator()", "main::{lambda(std::map<int, int>)#1}::operator()(int) const"));
  EXPECT_TRUE(is("operator std::string", "A::operator std::string()"));
  EXPECT_TRUE(is("operators", "a::operators(int)"));
  EXPECT_FALSE(is("string", "A::operator std::string()"));
  EXPECT_FALSE(is("f", "f<int>::g()"));
  EXPECT_FALSE(is("f(int)", "a::f(char)"));
  EXPECT_FALSE(is("malloc", "malloc@plt"));
  EXPECT_FALSE(is("a::b::f", "b::f()"));
  EXPECT_FALSE(is("", "b::f()"));
  EXPECT_FALSE(is("::", "b::f()"));
  EXPECT_FALSE(is("f", ""));
}

// As rustc shows them with both ways of mangling.
TEST(FunctionName, OfRustIsThatOfTheTypeAndLacksArguments) {
  auto is = [](const char* wanted, const char* name) { return is_called(named(name), wanted); };
  for (const char* name : {"<a::Queue<u8> as Iterator<u8>>::next", "<a::Queue<u8>>::next::<i32>",
                           "a::Queue<T>::next", "<a::Queue<T as b::C> as Iterator>::next"})
    for (const char* wanted : {"next", "Queue::next", "a::Queue::next"})
      EXPECT_TRUE(is(wanted, name)) << wanted << " of " << name;
  EXPECT_TRUE(is("f", "a::f::<u8, &str>"));
  EXPECT_TRUE(is("f::<u8>", "a::f::<u8>"));
  EXPECT_TRUE(is("f::{closure#0}", "a::f::<u8>::{closure#0}"));
  EXPECT_FALSE(is("f", "a::f::<u8>::{closure#0}"));
  EXPECT_FALSE(is("f::<u8>", "a::f::<i32>"));
  EXPECT_FALSE(is("b::Queue::next", "<a::Queue<u8> as Iterator>::next"));
  EXPECT_FALSE(is("C::next", "<a::Queue<T as b::C> as Iterator>::next"));
}

}  // namespace
}  // namespace tailtrace
