// Spare memory: addresses that are kept where the program may have only so many (setrlimit(2),
// RLIMIT_AS), which qemu and we take ours from, too. A program that has used them up and ends by
// that would take qemu along before anybody is told of it: for that the spare ones are given back.
//
// Threading: free for all, in handlers of signals as well.
#pragma once

namespace tailtrace {

// Keeps them, if there is a limit and they are not kept already.
void keep_spare_memory();

// Gives them back. False: there are none.
bool give_back_spare_memory();

}  // namespace tailtrace
