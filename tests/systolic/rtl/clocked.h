// Clocks one verilated module.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

/// A model with the clock clk_i. Set inputs, settle() to see their effect in this cycle, tick() to
/// go to the next.
template <class Model>
class Clocked {
 public:
  Model* operator->() { return &model_; }
  void settle() {
    model_.clk_i = 0;
    model_.eval();
  }
  void tick() {
    settle();
    model_.clk_i = 1;
    model_.eval();
    settle();
  }

 private:
  Model model_;
};

/// Element i of a flat port of `Element`s.
template <class Element, class Port>
Element element(const Port& port, std::size_t i) {
  Element value;
  std::memcpy(&value, reinterpret_cast<const char*>(&port) + i * sizeof(Element), sizeof(Element));
  return value;
}
template <class Element, class Port>
void set_element(Port& port, std::size_t i, Element value) {
  std::memcpy(reinterpret_cast<char*>(&port) + i * sizeof(Element), &value, sizeof(Element));
}
