"""Programs: the tokens of a library, the constraints on them, and the translation to trees and back."""
