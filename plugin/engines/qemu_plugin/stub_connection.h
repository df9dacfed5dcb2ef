// Stub connection: the socket by which qemu's stub hears from the debug server. It is a descriptor
// of the program's, too, which knows nothing of it: daemons close all that are open, shells put
// files in the place of low numbers, and programs count on 3 for what they open first. So it gets a
// number far up, and for the program there is none of that number.
//
// Threading: any thread, unless said otherwise.
#pragma once

namespace tailtrace {

// Before the program has a second thread, and before somebody connects. False: this qemu does not
// call the functions that it should.
bool keep_stub_connection();

// In a child, which has no stub: qemu closes the connection there.
void give_up_stub_connection();

}  // namespace tailtrace
