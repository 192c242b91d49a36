"""Programs: the tokens of a library, the constraints on them, and the way from trees and back."""
