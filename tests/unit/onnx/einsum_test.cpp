// Einsum of ONNX files against the sum over all letters, and the equations that are refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::Sample;
using ::testing::ElementsAreArray;

const std::map<char, std::int64_t> kSizes = {{'b', 2}, {'i', 2}, {'j', 3}, {'k', 4}};

Sample einsum(const std::string& equation, const std::vector<test::Integers>& shapes) {
  Sample sample;
  test::Names inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back("x" + std::to_string(i));
    sample.input(inputs.back(), shapes[i]);
  }
  sample.node("Einsum", inputs, {"y"}).text("equation", equation).output("y");
  return sample;
}

/// The place of an element whose letters have these indices.
std::size_t place(const std::string& letters, const std::map<char, std::int64_t>& index) {
  std::int64_t at = 0;
  for (const char letter : letters) at = at * kSizes.at(letter) + index.at(letter);
  return static_cast<std::size_t>(at);
}

test::Integers sizes_of(const std::string& letters) {
  test::Integers sizes;
  for (const char letter : letters) sizes.push_back(kSizes.at(letter));
  return sizes;
}

std::vector<double> counted_from(const std::string& letters, double first) {
  std::vector<double> values(static_cast<std::size_t>(Shape(sizes_of(letters)).elements()));
  for (auto& value : values) value = first++;
  return values;
}

/// The products of all elements, summed over the letters that the result lacks.
std::vector<double> summed(const std::vector<std::string>& operands, const std::string& result) {
  std::set<char> letters;
  for (const auto& operand : operands) letters.insert(operand.begin(), operand.end());
  std::vector<double> y(counted_from(result, 0).size());
  std::map<char, std::int64_t> index;
  const std::function<void(std::set<char>::iterator)> visit = [&](auto letter) {
    if (letter == letters.end()) {
      double product = 1;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const auto values = counted_from(operands[i], static_cast<double>(i) - 2);
        product *= values[place(operands[i], index)];
      }
      y[place(result, index)] += product;
      return;
    }
    for (std::int64_t i = 0; i < kSizes.at(*letter); ++i) {
      index[*letter] = i;
      visit(std::next(letter));
    }
  };
  visit(letters.begin());
  return y;
}

struct Equation {
  std::vector<std::string> operands;
  std::string result;
  bool implied = false;
};

TEST(Einsum, is_the_sum_over_the_letters_that_the_result_lacks) {
  const std::vector<Equation> equations = {{{"ij"}, "ij"},
                                           {{"ij"}, "ji"},
                                           {{"ij"}, "i"},
                                           {{"ij"}, ""},
                                           {{"ij", "jk"}, "ik"},
                                           {{"ij", "jk"}, "ki"},
                                           {{"ij", "jk"}, "ik", true},
                                           {{"ji"}, "ij", true},
                                           {{"bij", "bjk"}, "bik"},
                                           {{"ij", "kj"}, "ik"},
                                           {{"bij", "bkj"}, "kib"},
                                           {{"i", "j"}, "ij"},
                                           {{"ij", "ij"}, "ij"},
                                           {{"ij", "ij"}, ""},
                                           {{"ij", "jk"}, "k"},
                                           {{"bij", "jk"}, "bik"},
                                           {{"ij", "ij"}, "i"}};
  for (const auto& [operands, result, implied] : equations) {
    std::string text;
    std::vector<test::Integers> shapes;
    std::map<std::string, std::vector<double>> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      text += (i == 0 ? "" : ", ") + operands[i];
      shapes.push_back(sizes_of(operands[i]));
      inputs["x" + std::to_string(i)] = counted_from(operands[i], static_cast<double>(i) - 2);
    }
    if (!implied) text += " -> " + result;
    const auto y = test::outputs_of(einsum(text, shapes), inputs).front();
    EXPECT_EQ(y.spec.shape, Shape(sizes_of(result))) << text;
    EXPECT_THAT(y.values, ElementsAreArray(summed(operands, result))) << text;
  }
}

TEST(Einsum, refuses_equations_that_it_does_not_have) {
  const auto expect_refused = [](const std::string& equation,
                                 const std::vector<test::Integers>& shapes,
                                 const std::string& message) {
    SCOPED_TRACE(equation);
    test::expect_refused(einsum(equation, shapes), message);
  };
  expect_refused("...i->i", {{2, 2}}, "an ellipsis");
  expect_refused("ii->i", {{2, 2}}, "a diagonal");
  expect_refused("i,i,i->i", {{2}, {2}, {2}}, "an equation of 3 operands");
  expect_refused("i,i->i", {{2}}, "another number of operands");
  expect_refused("i->i", {{2}, {2}}, "another number of operands");
  expect_refused("i1->i", {{2, 2}}, "its equation is wrong");
  expect_refused("i->1", {{2}}, "its equation is wrong");
  expect_refused("i->i", {{2, 2}}, "its equation does not fit");
  expect_refused("i->k", {{2}}, "letters that no operand has");
  expect_refused("ij,jk->ik", {{2, 3}, {4, 2}}, "its operands do not fit");
  expect_refused("bij,bjk->bik", {{2, 2, 3}, {3, 3, 2}}, "its operands do not fit");
}

}  // namespace
}  // namespace triptych::onnx
