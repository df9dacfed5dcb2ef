// What a path that a program executes is called once another qemu has taken this one's place: by
// then /proc/self, and a descriptor that closes at execve, stand for something else, or nothing.
//
// Threading: remember_program() before all else; the others on any thread.
#pragma once

#include <optional>
#include <string>

namespace tailtrace {

// The file that the guest executes, as qemu was told; the folder it is relative to is the current.
void remember_program(const std::string& path);

// Another path of the same file that stays valid, or the path itself where it does. Nothing when
// there is none. A file without a name (memfd_create) has one by a descriptor that is held for it.
std::optional<std::string> lasting_path(const std::string& path);
std::optional<std::string> lasting_path_of(int fd);

// The descriptor that is held for the program to be executed; -1: none is.
int held_descriptor();
// The program was not executed.
void release_descriptor();
// In the program that was: from the next one on it is closed, as the one was that it stands for.
void keep_descriptor_from_next(int fd);

}  // namespace tailtrace
